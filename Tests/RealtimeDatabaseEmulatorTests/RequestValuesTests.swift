import DatabaseModel
import DatabaseTree
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
@testable import RealtimeDatabaseEmulator
import Testing

@Suite("The values in requests")
struct RequestValuesTests {
  private func merge(_ json: String, below path: String = "/") throws -> DatabaseWrite {
    let members = try JSONTree.parse(Array(json.utf8)).members ?? []
    return try DatabaseWrite(merging: members, below: DatabasePath(clientText: path))
  }

  @Test("The names of an update are paths, and may end in a priority")
  func merges() throws {
    let write = try merge(#"{"a/b":1,"a/c":null,"d/.priority":2}"#, below: "/x")
    guard case .merge(let path, let members) = write.operation else {
      Issue.record("not a merge")
      return
    }
    #expect(path == DatabasePath(["x"]))
    #expect(members.map(\.path.description) == ["/a/b", "/a/c", "/d"])
    #expect(members.map(\.isPriority) == [false, false, true])
    #expect(members.map(\.value.node.leaf) == [.number(1), nil, .number(2)])
  }

  @Test(
    "An update is refused if a name is no path, or a value no value",
    arguments: [
      #"{"":1}"#, #"{"/":1}"#, #"{"a.b":1}"#, #"{"a/$b":1}"#, #"{".value":1}"#,
      #"{"a":{"b.c":1}}"#, #"{"a/.priority":true}"#,
    ]
  )
  func refusesMerge(json: String) {
    #expect(throws: DatabaseDataError.self) { try merge(json) }
  }

  @Test(
    "The instance is named by the parameter, then by the host",
    arguments: [
      ("ns=a", "localhost:9000", "a"), ("", "localhost:9000", "fake-server"),
      ("", "127.0.0.1:9000", "fake-server"), ("", "other.localhost:9000", "other"),
      ("", "x-default-rtdb.firebaseio.com", "x-default-rtdb"),
      ("", "x.europe-west1.firebasedatabase.app", "x"), ("ns=b", "other.localhost", "b"),
    ]
  )
  func instanceNames(parameters: String, host: String, name: String) {
    #expect(InstanceName.of(QueryParameters(parameters), authority: host) == name)
  }

  private func call(
    _ target: String,
    _ method: HTTPRequest.Method = .get,
    _ headers: HTTPFields = [:]
  ) throws -> RESTCall? {
    let request = Request(
      head: HTTPRequest(
        method: method,
        scheme: "http",
        authority: "a",
        path: target,
        headerFields: headers
      )
    )
    return try request.location().map { try RESTCall(request, $0) }
  }

  @Test("Paths are decoded after they are split")
  func paths() throws {
    #expect(try call("/.json")?.path == .root)
    #expect(try call("/a.json")?.path == DatabasePath(["a"]))
    #expect(try call("/a/.json?x=1")?.path == DatabasePath(["a"]))
    #expect(try call("/a%20b//c.json")?.path == DatabasePath(["a b", "c"]))
    #expect(try call("/a/.priority.json")?.location.isPriority == true)
    #expect(try call("/a") == nil)
    for bad in ["/a%2Fb.json", "/%00.json", "/../b.json", "/a.b.json", "/a%5B.json", "/%zz.json"] {
      #expect(throws: DatabaseError.invalidPath) { try call(bad) }
    }
    let deep = String(repeating: "/a", count: 33)
    #expect(throws: DatabaseError.invalidPath) { try call("\(deep).json") }
  }

  @Test("A POST may stand for another method")
  func methods() throws {
    #expect(try call("/.json?x-http-method-override=PATCH", .post)?.method == .patch)
    #expect(
      try call("/.json", .post, [fieldName("X-HTTP-Method-Override"): "delete"])?.method == .delete
    )
    #expect(try call("/.json?x-http-method-override=PATCH", .get)?.method == .get)
  }

  @Test(
    "Time limits have a unit, and a bound",
    arguments: [("3s", 3000), ("500ms", 500), ("2min", 120_000), ("15min", 900_000)]
  )
  func timeouts(text: String, milliseconds: Int) throws {
    #expect(try call("/.json?timeout=\(text)")?.timeout == .milliseconds(milliseconds))
  }

  @Test(
    "Parameters that mean nothing are refused",
    arguments: [
      "timeout=3", "timeout=s", "timeout=16min", "timeout=-1s", "timeout=99999999999999999999s",
      "callback=a(b)", "callback=", "writeSizeLimit=huge",
    ]
  )
  func refusesParameters(text: String) {
    #expect(throws: DatabaseError.self) { try call("/.json?\(text)") }
  }

  @Test("Conditions on changes are for PUT and DELETE")
  func conditions() throws {
    let headers: HTTPFields = [.ifMatch: "x"]
    #expect(try call("/.json", .put, headers)?.ifMatch == "x")
    #expect(try call("/.json", .delete, headers)?.ifMatch == "x")
    #expect(throws: DatabaseError.self) { try call("/.json", .patch, headers) }
    #expect(throws: DatabaseError.self) { try call("/.json", .post, headers) }
  }

  @Test("Indented JSON has a member on each line, and texts as they were")
  func layout() {
    let json = #"{"a":[1,{"b":"{,:\""}],"c":null}"#
    let pretty = """
      {
        "a" : [ 1, {
          "b" : "{,:\\""
        } ],
        "c" : null
      }
      """
    #expect(String(decoding: JSONLayout.pretty(Array(json.utf8)), as: UTF8.self) == pretty)
    #expect(JSONLayout.pretty(Array("1".utf8)) == Array("1".utf8))
  }

  @Test("Equal values have equal tags, and no value has a tag of its own")
  func tags() {
    #expect(EntityTag.of(.empty) == "null_etag")
    #expect(EntityTag.of(DatabaseNode(.number(1))) == EntityTag.of(DatabaseNode(.number(1))))
    #expect(EntityTag.of(DatabaseNode(.number(1))) != EntityTag.of(DatabaseNode(.string("1"))))
  }
}
