import DocumentModel
import Events
import StatusCodes
import Testing

@testable import DocumentStore

@Suite("Commit plan")
struct CommitPlanTests {
  static let now = time(9_999)

  func plan(_ writes: [Write], over stored: FirestoreDocument?...) -> CommitPlan {
    CommitPlan(writes, requestTime: Self.now) { name in
      stored.compactMap { $0 }.first { $0.name == name }
    }
  }

  struct MaskCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var stored: MapValue?
    var fields: MapValue
    var mask: [String]?
    var expected: MapValue

    init(
      _ title: String,
      _ stored: MapValue?,
      _ fields: MapValue,
      _ mask: [String]?,
      _ expected: MapValue
    ) {
      testDescription = title
      self.stored = stored
      self.fields = fields
      self.mask = mask
      self.expected = expected
    }
  }

  @Test(
    "An update sets what its mask names and nothing else",
    arguments: [
      MaskCase("no mask replaces", ["a": .integer(1)], ["b": .integer(2)], nil, ["b": .integer(2)]),
      MaskCase("no mask creates", nil, ["b": .integer(2)], nil, ["b": .integer(2)]),
      MaskCase("empty mask keeps", ["a": .integer(1)], ["b": .null], [], ["a": .integer(1)]),
      MaskCase("empty mask creates", nil, ["b": .null], [], [:]),
      MaskCase(
        "named field merges",
        ["a": .integer(1), "b": .integer(2)],
        ["a": .integer(3), "z": .null],
        ["a"],
        ["a": .integer(3), "b": .integer(2)]
      ),
      MaskCase(
        "named and absent is deleted",
        ["a": .integer(1), "b": .integer(2)],
        [:],
        ["a"],
        ["b": .integer(2)]
      ),
      MaskCase(
        "nested path merges into its map",
        ["m": .map(["x": .integer(1), "y": .integer(2)])],
        ["m": .map(["x": .integer(9)])],
        ["m.x"],
        ["m": .map(["x": .integer(9), "y": .integer(2)])]
      ),
      MaskCase(
        "nested path makes maps and replaces what is none",
        ["m": .integer(1)],
        ["m": .map(["x": .map(["y": .integer(9)])])],
        ["m.x.y"],
        ["m": .map(["x": .map(["y": .integer(9)])])]
      ),
      MaskCase(
        "nested deletion leaves an empty map",
        ["m": .map(["x": .integer(1)])],
        [:],
        ["m.x"],
        ["m": .map([:])]
      ),
      MaskCase("deletion below a non-map", ["m": .integer(1)], [:], ["m.x"], ["m": .integer(1)]),
      MaskCase(
        "an ancestor in the mask wins",
        ["m": .map(["x": .integer(1)])],
        ["m": .map(["y": .integer(2)])],
        ["m", "m.y"],
        ["m": .map(["y": .integer(2)])]
      ),
    ]
  )
  func masks(test: MaskCase) {
    let stored = test.stored.map { document("c/d", $0) }

    let plan = plan([set("c/d", test.fields, mask: test.mask)], over: stored)

    #expect(plan.documents[0].final?.fields == test.expected)
  }

  struct PreconditionCase: Sendable {
    var precondition: Precondition
    var exists: Bool
    var error: StatusError?
  }

  static let preconditionCases: [PreconditionCase] = [
    PreconditionCase(precondition: .none, exists: false),
    PreconditionCase(precondition: .none, exists: true),
    PreconditionCase(precondition: .exists(true), exists: true),
    PreconditionCase(precondition: .exists(false), exists: false),
    PreconditionCase(precondition: .updateTime(time(200)), exists: true),
    PreconditionCase(
      precondition: .exists(true),
      exists: false,
      error: StatusError(.notFound, "No document to update: \(name("c/d"))")
    ),
    PreconditionCase(
      precondition: .exists(false),
      exists: true,
      error: StatusError(.alreadyExists, "Document already exists: \(name("c/d"))")
    ),
    PreconditionCase(
      precondition: .updateTime(time(199)),
      exists: true,
      error: StatusError(
        .failedPrecondition,
        "the stored version (200) does not match the required base version (199)"
      )
    ),
    // As in the official emulator: a version that the document never had.
    PreconditionCase(
      precondition: .updateTime(time(201)),
      exists: true,
      error: .invalidArgument(
        "Invalid base version, it is greater than the stored version: \(name("c/d"))"
      )
    ),
    PreconditionCase(
      precondition: .updateTime(time(99_000_000)),
      exists: false,
      error: StatusError(
        .failedPrecondition,
        "the stored version (0) does not match the required base version (99000000)"
      )
    ),
    PreconditionCase(
      precondition: .updateTime(time(200)),
      exists: false,
      error: StatusError(
        .failedPrecondition,
        "the stored version (0) does not match the required base version (200)"
      )
    ),
  ]

  @Test("Every kind of write obeys its precondition", arguments: preconditionCases)
  func preconditions(test: PreconditionCase) throws {
    var writes = [set("c/d", if: test.precondition), delete("c/d", if: test.precondition)]
    if test.precondition != .none { writes.append(verify("c/d", if: test.precondition)) }
    for write in writes {
      let plan = plan([write], over: test.exists ? document("c/d") : nil)

      if let error = test.error {
        #expect(throws: error) { try plan.checkPreconditions() }
      } else {
        try plan.checkPreconditions()
      }
    }
  }

  @Test("exists is held against the evolving state, update_time against the stored one")
  func sequentialPreconditions() throws {
    try plan([set("c/d"), set("c/d", if: .exists(true))]).checkPreconditions()
    try plan([delete("c/d"), set("c/d", if: .exists(false))], over: document("c/d"))
      .checkPreconditions()
    try plan(
      [
        set("c/d", ["a": .integer(1)], if: .updateTime(time(200))),
        set("c/d", ["a": .integer(2)], if: .updateTime(time(200))),
      ],
      over: document("c/d")
    ).checkPreconditions()
  }

  @Test("The first failing write decides, whatever follows")
  func firstFailure() {
    let plan = plan([set("c/a", if: .exists(true)), set("c/b", if: .exists(false))])

    #expect(throws: StatusError(.notFound, "No document to update: \(name("c/a"))")) {
      try plan.checkPreconditions()
    }
  }

  @Test("A document of 1 048 576 bytes is stored and one of a byte more is refused")
  func documentSize() throws {
    // Name 20, overhead 32, two fields with 2 bytes for the name and 1 for the end each.
    let room = 1_048_576 - 20 - 32 - 6
    func fields(_ bytes: Int) -> MapValue {
      [
        "f": .string(String(repeating: "x", count: 500_000)),
        "g": .string(String(repeating: "x", count: bytes - 500_000)),
      ]
    }

    try plan([set("c/d", fields(room))]).checkPreconditions()
    #expect(
      throws: StatusError.invalidArgument(
        "Document '\(name("c/d"))' cannot be written because its size (1,048,577 bytes) exceeds "
          + "the maximum allowed size of 1,048,576 bytes."
      )
    ) {
      try plan([set("c/d", fields(room + 1))]).checkPreconditions()
    }
  }

  @Test("A document of 40 000 index entries is stored and one of more is refused")
  func indexEntries() throws {
    func fields(_ elements: Int64) -> MapValue {
      [
        "a": .array((0..<elements).map(FirestoreValue.integer)),
        "m": .map(["x": .integer(1), "y": .array([.null, .null])]),
      ]
    }
    let equal = FirestoreValue.array(Array(repeating: .integer(1), count: 50_000))

    try plan([set("c/d", fields(39_997)), set("c/e", ["a": equal])]).checkPreconditions()
    #expect(
      throws: StatusError.invalidArgument(
        "Document '\(name("c/d"))' cannot be written because it has too many index entries "
          + "(40,001); at most 40,000 are allowed."
      )
    ) {
      try plan([set("c/d", fields(39_998))]).checkPreconditions()
    }
  }

  @Test("Creating, changing and deleting make one change each with the commit's time")
  func changes() {
    let stored = [document("c/b", ["v": .integer(1)]), document("c/c")]
    let plan = plan(
      [set("c/a", ["v": .integer(1)]), set("c/b", ["v": .integer(2)]), delete("c/c")],
      over: stored[0],
      stored[1]
    )

    let changes = plan.changes(at: time(777))

    #expect(
      changes == [
        DocumentChange(
          name: name("c/a"),
          before: nil,
          after: document("c/a", ["v": .integer(1)], created: 777, updated: 777)
        ),
        DocumentChange(
          name: name("c/b"),
          before: stored[0],
          after: document("c/b", ["v": .integer(2)], created: 100, updated: 777)
        ),
        DocumentChange(name: name("c/c"), before: stored[1], after: nil),
      ]
    )
    #expect(plan.results(at: time(777)).map(\.updateTime) == [time(777), time(777), nil])
  }

  @Test("Writing the stored value changes nothing and returns the old version")
  func noOps() {
    let stored = document("c/d", ["a": .integer(3), "b": .array([.null])])
    let writes = [
      set("c/d", stored.fields), set("c/d", stored.fields, mask: ["a"]), set("c/d", mask: []),
      set("c/d", mask: ["zzz"]),
      set(
        "c/d",
        mask: [],
        transforms: [
          FieldTransform(path("b"), .appendMissingElements([.null])),
          FieldTransform(path("a"), .increment(.integer(0))),
          FieldTransform(path("a"), .maximum(.double(3))),
        ]
      ),
    ]
    for write in writes {
      let plan = plan([write], over: stored)

      #expect(plan.changes(at: time(777)).isEmpty)
      #expect(plan.results(at: time(777))[0].updateTime == time(200))
    }
  }

  @Test("Changing and changing back in one commit is no change either")
  func netNoOp() {
    let stored = document("c/d", ["a": .integer(1)])
    let plan = plan(
      [set("c/d", ["a": .integer(2)]), set("c/d", ["a": .integer(1)])],
      over: stored
    )

    #expect(plan.changes(at: time(777)).isEmpty)
    #expect(plan.results(at: time(777)).map(\.updateTime) == [time(200), time(200)])
  }

  @Test(
    "Another numeric type or another zero is a change",
    arguments: [
      (.integer(3), .double(3)), (.double(0), .double(-0.0)),
    ] as [(FirestoreValue, FirestoreValue)]
  )
  func exactEquality(stored: FirestoreValue, written: FirestoreValue) {
    let plan = plan([set("c/d", ["a": written])], over: document("c/d", ["a": stored]))

    #expect(plan.changes(at: time(777)).count == 1)
  }

  @Test("Deleting what is not there, and creating and deleting at once, change nothing")
  func absentBeforeAndAfter() {
    #expect(plan([delete("c/d")]).changes(at: time(777)).isEmpty)
    let both = plan([set("c/d"), delete("c/d")])
    #expect(both.changes(at: time(777)).isEmpty)
    #expect(both.results(at: time(777)).map(\.updateTime) == [nil, nil])
  }

  @Test("Deleting and creating again is a change with a new create time, even of equal content")
  func recreation() {
    let stored = document("c/d", ["a": .integer(1)])
    let plan = plan([delete("c/d"), set("c/d", stored.fields)], over: stored)

    let changes = plan.changes(at: time(777))

    #expect(changes.map { $0.after?.createTime } == [time(777)])
    #expect(plan.results(at: time(777)).map(\.updateTime) == [nil, time(777)])
  }

  @Test("Writes to one document build on one another and make one change")
  func sequence() {
    let increment = FieldTransform(path("n"), .increment(.integer(1)))
    let plan = plan([
      set("c/d", ["n": .integer(5)]), set("c/d", mask: [], transforms: [increment, increment]),
    ])

    let changes = plan.changes(at: time(777))

    #expect(changes.map { $0.after?.fields } == [["n": .integer(7)]])
    #expect(plan.results(at: time(777))[1].transformResults == [.integer(6), .integer(7)])
  }

  @Test("All server timestamps of a commit are the request's time in whole milliseconds")
  func serverTimestamps() {
    let stamp = FieldTransform(path("t"), .requestTime)
    let plan = plan([
      set("c/a", mask: [], transforms: [stamp]), set("c/b", mask: [], transforms: [stamp]),
    ])

    let values = plan.changes(at: time(10_000)).map { $0.after?.fields["t"] }

    #expect(values == [.timestamp(time(9_000)), .timestamp(time(9_000))])
  }

  @Test("A verify changes nothing and returns no version")
  func verifies() {
    let plan = plan([verify("c/d", if: .exists(true))], over: document("c/d"))

    #expect(plan.changes(at: time(777)).isEmpty)
    #expect(plan.results(at: time(777)) == [WriteOutcome()])
  }
}
