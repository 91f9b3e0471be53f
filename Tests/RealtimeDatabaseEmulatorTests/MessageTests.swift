import DatabaseModel
import DatabaseTree
@testable import RealtimeDatabaseEmulator
import Testing

@Suite("The messages of the protocol")
struct MessageTests {
  private func text(_ message: ServerMessage) -> String {
    String(decoding: message.json, as: UTF8.self)
  }

  @Test("The server's messages have the form that clients read")
  func serverMessages() {
    let node = EncodedNode(DatabaseNode(.number(1), priority: .number(2)))
    let path = DatabasePath(["a", "b\""])
    #expect(
      text(.hello(atMilliseconds: 5, host: "h:1", session: "s"))
        == #"{"t":"c","d":{"t":"h","d":{"ts":5,"v":"5","h":"h:1","s":"s"}}}"#
    )
    #expect(text(.control("o")) == #"{"t":"c","d":{"t":"o","d":{}}}"#)
    #expect(
      text(.value(path, node, tag: 3))
        == #"{"t":"d","d":{"a":"d","b":{"p":"a/b\"","d":{".priority":2,".value":1},"t":3}}}"#
    )
    #expect(
      text(.merge(.root, EncodedMembers([(DatabasePath(["c", "d"]), .empty)]), tag: nil))
        == #"{"t":"d","d":{"a":"m","b":{"p":"","d":{"c/d":null}}}}"#
    )
    #expect(
      text(.node(4, node))
        == #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{".priority":2,".value":1}}}}"#
    )
    #expect(
      text(.error(4, .permissionDenied))
        == #"{"t":"d","d":{"r":4,"b":{"s":"permission_denied","d":"Permission denied"}}}"#
    )
    #expect(
      text(.error(4, .stale))
        == #"{"t":"d","d":{"r":4,"b":{"s":"datastale","d":"Transaction hash does not match"}}}"#
    )
    #expect(text(.revoked(path, nil)) == #"{"t":"d","d":{"a":"c","b":{"p":"a/b\""}}}"#)
    #expect(
      text(.revoked(.root, DatabaseQuery(order: .key)))
        == #"{"t":"d","d":{"a":"c","b":{"p":"","q":[{"i":".key"}]}}}"#
    )
  }

  @Test("A request has a number and an action")
  func requests() throws {
    let text = Array(#"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/a","d":[1.50]}}}"#.utf8)
    let message = try #require(ClientMessage(text))
    guard case .request(3, "p", let body) = message.content else {
      Issue.record("not the request")
      return
    }
    #expect(body["p"]?.text == "/a")
    #expect(message.bodyText("d") == Array("[1.50]".utf8))
  }

  @Test(
    "Anything else is no message",
    arguments: [
      "", "{", "[]", "1", "null", #"{"t":"d"}"#, #"{"t":"x","d":{}}"#, #"{"t":"d","d":{"a":"p"}}"#,
      #"{"t":"d","d":{"r":"1","a":"p"}}"#, #"{"t":"d","d":{"r":1.5,"a":"p"}}"#,
      #"{"t":"d","d":{"r":1e300,"a":"p"}}"#, #"{"t":"c","d":{}}"#, #"{"t":"c","d":[]}"#,
    ]
  )
  func refuses(text: String) {
    #expect(ClientMessage(Array(text.utf8)) == nil)
  }

  @Test("Bytes that are no text are no message")
  func notText() {
    #expect(ClientMessage([0x7B, 0xFF, 0x7D]) == nil)
  }
}
