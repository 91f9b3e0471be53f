import DocumentModel
@testable import FirestoreClient
import TestSupport
import Testing

@Suite("Fields of writes")
struct FieldWritesTests {
  private let store = Firestore(
    FirestoreSettings(project: "p", endpoint: "http://h:1"),
    http: ScriptedHTTP()
  )
  private var reference: DocumentReference { store.document("a/1") }

  private func path(_ text: String) throws -> FieldPath { try #require(FieldPath(text)) }

  /// Returns the parts of the only write in a batch.
  private func parts(
    _ build: (inout WriteBatch) throws -> Void
  ) throws -> (
    fields: MapValue, mask: [String]?, transforms: [FieldTransform], Precondition
  ) {
    var batch = store.batch()
    try build(&batch)
    let write = try #require(batch.writes.first)
    guard case .update(_, let fields, let mask, let transforms) = write.operation else {
      throw FirestoreError(.internal, "not an update")
    }
    return (fields, mask?.map(\.description), transforms, write.precondition)
  }

  @Test("A replacement has no mask, and computed fields apart")
  func replacement() throws {
    let (fields, mask, transforms, condition) = try parts {
      try $0.set(
        reference,
        ["a": 1, "t": .serverTimestamp, "m": ["n": .increment(2), "s": "x"], "l": [1, "b"]]
      )
    }
    #expect(
      fields == [
        "a": .integer(1), "m": .map(["s": .string("x")]), "l": .array([.integer(1), .string("b")]),
      ]
    )
    #expect(mask == nil)
    #expect(
      transforms == [
        FieldTransform(try path("m.n"), .increment(.integer(2))),
        FieldTransform(try path("t"), .requestTime),
      ]
    )
    #expect(condition == .none)
  }

  @Test("A dictionary takes values of any type beside computed ones, whichever form it has")
  func mixedDictionary() throws {
    struct Place: Encodable { var city: String }
    let text = "Hi"
    let expected: MapValue = [
      "text": .string("Hi"), "count": .integer(2), "at": .map(["city": .string("Bonn")]),
      "deep": .map(["n": .integer(1)]),
    ]
    let fields: [String: FieldValue] = [
      "text": .value(text), "count": 2, "at": .value(Place(city: "Bonn")),
      "deep": ["n": 1, "t": .serverTimestamp], "t": .serverTimestamp,
    ]
    func erased(_ data: some Encodable) throws -> (
      MapValue, [FieldTransform]
    ) {
      let found = try parts { try $0.set(reference, data) }
      return (found.fields, found.transforms)
    }
    let times = [
      FieldTransform(try path("deep.t"), .requestTime), FieldTransform(try path("t"), .requestTime),
    ]
    let mixed = try parts {
      try $0.set(
        reference,
        [
          "text": text, "count": 2, "at": Place(city: "Bonn"), "t": FieldValue.serverTimestamp,
          "deep": ["n": 1, "t": .serverTimestamp] as [String: FieldValue],
        ]
      )
    }
    #expect(mixed.fields == expected && mixed.transforms == times)
    let generic = try erased(fields)
    #expect(generic.0 == expected && generic.1 == times)
  }

  @Test("Literals that spell out the type keep every value and computed field, at any depth")
  func spelledOut() throws {
    let bytes = FirestoreValue.bytes([1, 2])
    let vector = FirestoreValue.vector([1, 2])
    let nested = try parts {
      try $0.set(
        reference,
        [
          "a": [
            "b": FieldValue.serverTimestamp, "c": FieldValue.value(bytes),
            "d": FieldValue.value(vector),
          ]
        ]
      )
    }
    #expect(nested.fields == ["a": .map(["c": bytes, "d": vector])])
    #expect(nested.transforms == [FieldTransform(try path("a.b"), .requestTime)])

    let deep = try parts {
      try $0.set(
        reference,
        ["a": ["b": ["c": FieldValue.value(vector), "d": FieldValue.increment(1)]], "n": 1]
      )
    }
    #expect(deep.fields == ["a": .map(["b": .map(["c": vector])]), "n": .integer(1)])
    #expect(deep.transforms == [FieldTransform(try path("a.b.d"), .increment(.integer(1)))])

    let list = try parts { try $0.set(reference, ["list": [FieldValue.value(bytes)]]) }
    #expect(list.fields == ["list": .array([bytes])])
    struct Message: Encodable { var picture: FieldValue }
    let typed = try parts { try $0.set(reference, Message(picture: .value(bytes))) }
    #expect(typed.fields == ["picture": bytes])
  }

  @Test("A computed value inside an encodable type is refused, not written as something else")
  func computedInside() {
    struct Message: Encodable { var sentAt = FieldValue.serverTimestamp }
    #expect(throws: (any Error).self) { try parts { try $0.set(reference, Message()) } }
    #expect(throws: (any Error).self) {
      try parts { try $0.set(reference, ["list": [FieldValue.increment(1)]]) }
    }
  }

  @Test("A merge masks the leaves, empty maps among them")
  func merge() throws {
    let (fields, mask, transforms, _) = try parts {
      try $0.set(
        reference,
        ["a": ["b": 1, "c": [:], "d": .delete], "t": .arrayUnion(1, "x"), "un-usual": true],
        .merge
      )
    }
    #expect(
      fields == ["a": .map(["b": .integer(1), "c": .map([:])]), "un-usual": .boolean(true)]
    )
    #expect(mask == ["a.b", "a.c", "`un-usual`", "a.d"])
    #expect(
      transforms
        == [FieldTransform(try path("t"), .appendMissingElements([.integer(1), .string("x")]))]
    )
  }

  @Test("A merge of chosen fields leaves the rest of the data out")
  func mergeFields() throws {
    let (fields, mask, transforms, _) = try parts {
      try $0.set(
        reference,
        ["a": ["b": 1, "c": 2], "t": .serverTimestamp, "u": .serverTimestamp, "z": 1],
        .mergeFields(["a.b", "t"])
      )
    }
    #expect(fields == ["a": .map(["b": .integer(1)])])
    #expect(mask == ["a.b"])
    #expect(transforms == [FieldTransform(try path("t"), .requestTime)])

    #expect(throws: FirestoreError.self) {
      try parts { try $0.set(reference, ["a": 1], .mergeFields(["b"])) }
    }
  }

  @Test("An update reads dotted paths and demands the document")
  func update() throws {
    let (fields, mask, transforms, condition) = try parts {
      try $0.update(
        reference,
        ["a.b": 1, "gone": .delete, "n": .increment(0.5), "m": ["x": 1, "t": .serverTimestamp]]
      )
    }
    #expect(fields == ["a": .map(["b": .integer(1)]), "m": .map(["x": .integer(1)])])
    #expect(mask == ["a.b", "gone", "m"])
    #expect(
      transforms == [
        FieldTransform(try path("m.t"), .requestTime),
        FieldTransform(try path("n"), .increment(.double(0.5))),
      ]
    )
    #expect(condition == .exists(true))
  }

  @Test("An update of computed fields alone has an empty mask, which is not none")
  func computedOnly() throws {
    let (fields, mask, transforms, _) = try parts {
      try $0.update(reference, ["t": .serverTimestamp])
    }
    #expect(fields.isEmpty)
    #expect(mask == [])
    #expect(transforms.count == 1)
  }

  @Test("Codable values and dictionaries write what they hold")
  func encodable() throws {
    struct Message: Codable {
      var text: String
      var readBy: [String]
      var mediaURL: String?
    }
    let (fields, _, _, condition) = try parts {
      try $0.create(reference, Message(text: "hi", readBy: ["u"]))
    }
    #expect(fields == ["text": .string("hi"), "readBy": .array([.string("u")])])
    #expect(condition == .exists(false))

    let status = "active"
    let (updated, mask, _, _) = try parts {
      try $0.update(reference, ["profile.status": status])
    }
    #expect(updated == ["profile": .map(["status": .string("active")])])
    #expect(mask == ["profile.status"])
  }

  @Test("References, and values in general, can be written")
  func references() throws {
    let other = store.document("b/2")
    let (fields, _, _, _) = try parts {
      try $0.set(reference, ["r": .value(other), "v": .value(FirestoreValue.vector([1, 2]))])
    }
    #expect(fields == ["r": .reference(other.name), "v": .vector([1, 2])])
  }

  @Test(
    "Updates that contradict themselves are refused",
    arguments: [
      [:], ["a": 1, "a.b": 2], ["a..b": 1], ["a": ["b": .delete]], ["a": [.serverTimestamp]],
      ["a": [["b": .delete]]], ["a/b": 1],
    ] as [[String: FieldValue]]
  )
  func refusedUpdates(fields: [String: FieldValue]) throws {
    let error = #expect(throws: FirestoreError.self) {
      try parts { try $0.update(reference, fields) }
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test("A replacement cannot delete a field")
  func deletionInReplacement() throws {
    #expect(throws: FirestoreError.self) {
      try parts { try $0.set(reference, ["a": .delete]) }
    }
  }
}

@Suite("Queries as values")
struct DocumentQueryTests {
  private let store = Firestore(
    FirestoreSettings(project: "p", endpoint: "http://h:1"),
    http: ScriptedHTTP()
  )

  @Test("Conditions add up, and null has an operator of its own")
  func filters() throws {
    let query = try store.collection("users").where("age", .greaterThan, 30)
      .where("role", .equal, FirestoreValue.null)
      .where(.or(.field("a", .in, [1, 2]), .field("b", .arrayContains, "x")))
      .validQuery()

    #expect(
      query.filter
        == .and([
          .field(FieldPath(["age"]), .greaterThan, .integer(30)),
          .unary(FieldPath(["role"]), .isNull),
          .or([
            .field(FieldPath(["a"]), .in, .array([.integer(1), .integer(2)])),
            .field(FieldPath(["b"]), .arrayContains, .string("x")),
          ]),
        ])
    )
  }

  @Test("A page starts behind the last document of the one before, by its name in the end")
  func pages() throws {
    let snapshot = DocumentSnapshot(
      reference: store.document("users/u1"),
      document: FirestoreDocument(
        name: store.document("users/u1").name,
        fields: ["age": .integer(40), "b": .integer(1)],
        createTime: Timestamp(microseconds: 0),
        updateTime: Timestamp(microseconds: 0)
      ),
      readTime: Timestamp(microseconds: 0)
    )
    let query = try store.collection("users").where("b", .notEqual, 2)
      .order(by: "age", descending: true).start(afterDocument: snapshot).validQuery()

    #expect(
      query.orders == [
        Query.Order(FieldPath(["age"]), descending: true),
        Query.Order(FieldPath(["b"]), descending: true),
        Query.Order(.documentID, descending: true),
      ]
    )
    #expect(
      query.start
        == Query.Cursor(
          [.integer(40), .integer(1), .reference(snapshot.reference.name)],
          before: false
        )
    )
  }

  @Test("Cursors say on which side of equal values they lie")
  func cursors() throws {
    let query = try store.collectionGroup("messages").order(by: "t").start(after: 1, "x")
      .end(before: 9).validQuery()
    #expect(query.start == Query.Cursor([.integer(1), .string("x")], before: false))
    #expect(query.end == Query.Cursor([.integer(9)], before: true))
    #expect(query.allDescendants)
  }

  @Test("What is wrong with a query throws when it runs, the first fault first")
  func faults() async throws {
    let error = await #expect(throws: FirestoreError.self) {
      try await store.collection("users").where("a..b", .equal, 1).limit(-1).get()
    }
    #expect(error?.message.contains("a..b") == true)

    await #expect(throws: FirestoreError.self) { try await store.collection("users/u1").get() }
  }
}
