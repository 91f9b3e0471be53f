import DocumentModel
import Events
import StatusCodes
import Testing

@testable import EmulatorSuite

@Suite("Fired event")
struct FiredEventTests {
  private static let database = DatabaseName(project: "demo-test")
  private static let time = Timestamp(microseconds: 1_800_000_000_000_000)

  private func event(_ json: String) throws -> DocumentChange {
    try FiredEvent(json: Array(json.utf8), database: Self.database, time: Self.time).change
  }

  @Test(
    "What is given decides whether the document was created, updated or deleted",
    arguments: [
      (#""data": {}"#, ChangeKind.created),
      (#""data": {"n": 1}, "before": {"n": 0}"#, .updated),
      (#""before": {"n": 0}"#, .deleted),
    ]
  )
  func kinds(sides: String, kind: ChangeKind) throws {
    let change = try event(#"{"document": "chats/c1/messages/m1", \#(sides)}"#)

    #expect(change.kind == kind)
    #expect(change.name.path.description == "chats/c1/messages/m1")
    #expect(change.name.database == Self.database)
    for document in [change.before, change.after].compactMap({ $0 }) {
      #expect(document.name == change.name)
      #expect(document.createTime == Self.time && document.updateTime == Self.time)
    }
  }

  @Test(
    "Plain JSON becomes Firestore's values",
    arguments: [
      (#"{"$timestamp": "2027-01-15T08:00:00Z"}"#, .timestamp(time)),
      (#"{"__timestamp__": "2027-01-15T08:00:00Z"}"#, .timestamp(time)),
      (#"{"$integer": "9007199254740993"}"#, .integer(9_007_199_254_740_993)),
      (#"[{"$double": 2}]"#, .array([.double(2)])),
      (
        #"{"$reference": "users/u"}"#,
        .reference(DocumentName(database: database, path: ResourcePath(["users", "u"])))
      ),
      ("null", FirestoreValue.null), ("true", .boolean(true)), (#""text""#, .string("text")),
      ("1", .integer(1)), ("-7", .integer(-7)), ("1.5", .double(1.5)), ("2.0", .double(2)),
      ("9007199254740992", .integer(9_007_199_254_740_992)), ("1e300", .double(1e300)),
      (#"[1, "a", null]"#, .array([.integer(1), .string("a"), .null])),
      (#"{"a": {"b": 1}}"#, .map(["a": .map(["b": .integer(1)])])), ("{}", .map([:])),
    ]
  )
  func plain(json: String, value: FirestoreValue) throws {
    let change = try event(#"{"document": "things/t", "data": {"v": \#(json), "w": 1}}"#)

    #expect(change.after?.fields == ["v": value, "w": .integer(1)])
  }

  @Test(
    "Firestore's own form is read when it is all there is",
    arguments: [
      (#"{"stringValue": "hi"}"#, FirestoreValue.string("hi")),
      (#"{"integerValue": "9007199254740993"}"#, .integer(9_007_199_254_740_993)),
      (#"{"doubleValue": 2}"#, .double(2)), (#"{"nullValue": null}"#, .null),
      (#"{"timestampValue": "2027-01-15T08:00:00Z"}"#, .timestamp(time)),
    ]
  )
  func firestoreForm(json: String, value: FirestoreValue) throws {
    let change = try event(#"{"document": "things/t", "data": {"fields": {"v": \#(json)}}}"#)

    #expect(change.after?.fields == ["v": value])
  }

  @Test("A plain field that happens to be called \"fields\" stays one beside others")
  func fieldsAmongOthers() throws {
    let change = try event(#"{"document": "things/t", "data": {"fields": {"a": 1}, "b": 2}}"#)

    #expect(change.after?.fields == ["fields": .map(["a": .integer(1)]), "b": .integer(2)])
  }

  @Test(
    "What is no event is an invalid argument that says why",
    arguments: [
      ("", "not a JSON object"), ("[]", "not a JSON object"), ("{", "not a JSON object"),
      (#"{"data": {}}"#, "give --document PATH"),
      (#"{"document": 7, "data": {}}"#, "not a document's path"),
      (#"{"document": "things", "data": {}}"#, "\"things\" is not a document's path"),
      (#"{"document": "a/b/c", "data": {}}"#, "not a document's path"),
      (#"{"document": "a//b/c", "data": {}}"#, "not a document's path"),
      (#"{"document": "things/t"}"#, "Give \"data\", \"before\" or both"),
      (#"{"document": "things/t", "data": [1]}"#, "\"data\" is not a JSON object"),
      (#"{"document": "things/t", "data": null}"#, "\"data\" is not a JSON object"),
      (#"{"document": "things/t", "before": 1}"#, "\"before\" is not a JSON object"),
      (#"{"document": "t/t", "data": {"a": {"$timestamp": 5}}}"#, "--data: a must be written as"),
      (
        #"{"document": "t/t", "before": {"a": {"$time": ""}}}"#,
        "--before: a has \"$time\", which is"
      ),
      (#"{"document": "t/t", "data": {"__a__": 1}}"#, "\"__a__\", which is no name of a field"),
      (#"{"document": "t/t", "data": {"fields": {"a": 1}}}"#, "Firestore's form"),
      (#"{"document": "t/t", "data": {"fields": {"a": {"noValue": 1}}}}"#, "Firestore's form"),
    ]
  )
  func refused(json: String, words: String) {
    let error = #expect(throws: (any Error).self) { try event(json) }
    let status = error as? any StatusConvertible

    #expect(status?.statusCode == .invalidArgument)
    #expect(status?.statusMessage.contains(words) == true, "\(status?.statusMessage ?? "")")
  }
}
