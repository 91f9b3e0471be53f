import DatabaseModel
import DatabaseTree
import HTTPSupport
import JSONText
@testable import RealtimeDatabaseEmulator
import Testing

@Suite("Queries of clients")
struct DatabaseQueryTests {
  private typealias Bound = DatabaseQuery.Bound

  private static func number(_ number: Double, _ key: String? = nil, inclusive: Bool = true)
    -> Bound
  {
    Bound(
      .leaf(.number(number)),
      key: key.map { .key(DatabaseKey($0)) },
      isInclusive: inclusive
    )
  }

  private static let age = DatabaseQuery.Order.child(DatabasePath(["age"]))

  // MARK: - REST

  private static let parameters: [(String, DatabaseQuery?)] = [
    ("", nil),
    (#"orderBy="age""#, DatabaseQuery(order: age)),
    (#"orderBy="a/b""#, DatabaseQuery(order: .child(DatabasePath(["a", "b"])))),
    (
      #"orderBy="$value"&limitToLast=2"#,
      DatabaseQuery(order: .value, limit: .init(2, isFromEnd: true))
    ),
    (
      #"orderBy="$priority"&startAt=1&limitToFirst=3"#,
      DatabaseQuery(start: number(1), limit: .init(3, isFromEnd: false))
    ),
    (#"orderBy="age"&startAfter=1"#, DatabaseQuery(order: age, start: number(1, inclusive: false))),
    (#"orderBy="age"&endAt=2,"k""#, DatabaseQuery(order: age, end: number(2, "k"))),
    (#"orderBy="age"&endBefore=2"#, DatabaseQuery(order: age, end: number(2, inclusive: false))),
    (#"orderBy="age"&equalTo=2"#, DatabaseQuery(order: age, start: number(2), end: number(2))),
    (
      #"orderBy="age"&equalTo=null"#,
      DatabaseQuery(order: age, start: Bound(.null), end: Bound(.null))
    ),
    (
      #"orderBy="age"&equalTo="x,\"y""#,
      DatabaseQuery(
        order: age,
        start: Bound(.leaf(.string("x,\"y"))),
        end: Bound(.leaf(.string("x,\"y")))
      )
    ),
    (
      #"orderBy="$key"&startAt="b"&endBefore="d""#,
      DatabaseQuery(
        order: .key,
        start: Bound(.null, key: .key(DatabaseKey("b"))),
        end: Bound(.null, key: .key(DatabaseKey("d")), isInclusive: false)
      )
    ),
    (#"orderBy="$key"&startAt=null"#, DatabaseQuery(order: .key)),
  ]

  @Test("The parameters of a URL become a query", arguments: parameters)
  func parsesParameters(text: String, query: DatabaseQuery?) throws {
    #expect(try DatabaseQuery.parse(QueryParameters(text)) == query)
  }

  private static let orderMissing =
    "orderBy must be defined when other query parameters are defined"
  private static let orderInvalid = "orderBy must be a valid JSON encoded path"
  private static let primitive = "Constraint index field must be a JSON primitive"

  @Test(
    "Parameters that are no query have production's answer",
    arguments: [
      ("startAt=1", orderMissing), ("limitToFirst=1", orderMissing), ("equalTo=null", orderMissing),
      ("orderBy=age", orderInvalid), ("orderBy=null", orderInvalid), ("orderBy=", orderInvalid),
      (#"orderBy="""#, orderInvalid), (#"orderBy="a.b""#, orderInvalid),
      (#"orderBy="a"&startAt={}"#, primitive), (#"orderBy="a"&startAt=[1]"#, primitive),
      (#"orderBy="a"&startAt=x"#, primitive), (#"orderBy="a"&startAt=1],[2"#, primitive),
      (#"orderBy="a"&startAt=1,"b","c""#, primitive), (#"orderBy="a"&startAt="#, primitive),
      (#"orderBy="a"&startAt=1,2"#, "Constraint key field must be a string"),
      (#"orderBy="a"&limitToFirst=0"#, "limitToFirst must be a positive integer"),
      (#"orderBy="a"&limitToLast=-1"#, "limitToLast must be a positive integer"),
      (#"orderBy="a"&limitToLast=99999999999"#, "limitToLast must be a positive integer"),
      (
        #"orderBy="a"&limitToLast=1&limitToFirst=1"#,
        "Only one of limitToFirst and limitToLast can be specified"
      ),
      (
        #"orderBy="a"&equalTo=1&startAt=1"#,
        "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
      ),
      (
        #"orderBy="a"&startAfter=1&startAt=1"#,
        "startAt and startAfter, and endAt and endBefore, cannot be defined together"
      ),
      (#"orderBy="$key"&startAt=1"#, "The bound of a query by key must be one string"),
      (#"orderBy="$key"&startAt="a","b""#, "The bound of a query by key must be one string"),
    ]
  )
  func refusesParameters(text: String, message: String) {
    #expect(throws: DatabaseError(.invalid, message)) {
      try DatabaseQuery.parse(QueryParameters(text))
    }
  }

  // MARK: - Messages

  /// Queries as Firebase's JavaScript client writes them.
  private static let objects: [(String, DatabaseQuery)] = [
    (#"{"i":".key"}"#, DatabaseQuery(order: .key)),
    (#"{"i":".value"}"#, DatabaseQuery(order: .value)),
    (#"{"i":"a/b"}"#, DatabaseQuery(order: .child(DatabasePath(["a", "b"])))),
    (#"{"l":2,"vf":"l"}"#, DatabaseQuery(limit: .init(2, isFromEnd: false))),
    (#"{"l":2,"vf":"r","i":"age"}"#, DatabaseQuery(order: age, limit: .init(2, isFromEnd: true))),
    (
      #"{"sp":1,"sn":"","sin":true,"ep":2,"en":"k","ein":true,"i":"age"}"#,
      DatabaseQuery(order: age, start: number(1), end: number(2, "k"))
    ),
    (
      #"{"sp":true,"sn":"[MAX_NAME]","sin":false,"i":"age"}"#,
      DatabaseQuery(
        order: age,
        start: Bound(.leaf(.boolean(true)), key: .max, isInclusive: false)
      )
    ),
    (
      #"{"ep":"x","en":"[MIN_NAME]","ein":false}"#,
      DatabaseQuery(end: Bound(.leaf(.string("x")), key: .min, isInclusive: false))
    ),
    (
      #"{"sp":"b","sin":true,"i":".key"}"#,
      DatabaseQuery(order: .key, start: Bound(.null, key: .key(DatabaseKey("b"))))
    ),
    (#"{"sp":null,"sin":true}"#, DatabaseQuery(start: Bound(.null))),
  ]

  @Test("The object of a message becomes a query, and is the same again", arguments: objects)
  func parsesObject(text: String, query: DatabaseQuery) throws {
    #expect(try DatabaseQuery.parse(wire: JSONTree.parse(Array(text.utf8))) == query)
    let again = try JSONTree.parse(query.wireJSON)
    #expect(try DatabaseQuery.parse(wire: again) == query)
    let given = try JSONValue.parse(text.replacing(#""sn":"","#, with: "").utf8)
    #expect(try JSONValue.parse(query.wireJSON) == given)
  }

  @Test("A missing object, an empty one, and one without effect mean the whole node")
  func wholeNode() throws {
    for text in ["null", "{}", #"{"i":".priority"}"#] {
      #expect(try DatabaseQuery.parse(wire: JSONTree.parse(Array(text.utf8))) == nil)
    }
    #expect(try DatabaseQuery.parse(wire: nil) == nil)
  }

  @Test("Bounds are inclusive unless they say otherwise, and limits come from the end")
  func defaults() throws {
    let tree = try JSONTree.parse(Array(#"{"sp":1,"l":1,"vf":"r"}"#.utf8))
    let query = try DatabaseQuery.parse(wire: tree)
    #expect(query?.start?.isInclusive == true)
    #expect(query?.limit?.isFromEnd == true)
  }

  @Test(
    "An object that no client writes is refused",
    arguments: [
      "1", "[]", #"{"i":1}"#, #"{"i":"a.b"}"#, #"{"l":0}"#, #"{"l":1.5}"#, #"{"l":"1"}"#,
      #"{"sp":{}}"#, #"{"sp":1,"sn":2}"#, #"{"i":".key","sp":1}"#,
      #"{"i":".key","sp":"a","sn":"b"}"#,
    ]
  )
  func refusesObject(text: String) {
    #expect(throws: DatabaseError.self) {
      try DatabaseQuery.parse(wire: JSONTree.parse(Array(text.utf8)))
    }
  }
}
