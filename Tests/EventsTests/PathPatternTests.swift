import DocumentModel
import Events
import StatusCodes
import Testing

@Suite("Path patterns")
struct PathPatternTests {
  @Test(
    "A matching path yields its captures",
    arguments: [
      ("chats/{chatId}", "chats/c1", ["chatId": "c1"]),
      ("/chats/{chatId}/", "chats/c1", ["chatId": "c1"]),
      ("chats/{c}/messages/{m=*}", "chats/c1/messages/m1", ["c": "c1", "m": "m1"]),
      ("chats/*/messages/{m}", "chats/c1/messages/m1", ["m": "m1"]),
      ("chats/c1", "chats/c1", [:]),
      ("{all=**}", "chats/c1/messages/m1", ["all": "chats/c1/messages/m1"]),
      ("users/{u}/{rest=**}", "users/u1/a/b", ["u": "u1", "rest": "a/b"]),
      ("{up=**}/messages/{m}", "chats/c1/messages/m1", ["up": "chats/c1", "m": "m1"]),
      ("users/**", "users/u1", [:]),
    ]
  )
  func captures(pattern: String, path: String, expected: [String: String]) throws {
    let pattern = try PathPattern(pattern)

    #expect(pattern.match(ResourcePath(slashSeparated: path)) == expected)
  }

  @Test(
    "A path that differs in a segment or in depth does not match",
    arguments: [
      ("chats/{c}", "rooms/c1"), ("chats/{c}", "chats/c1/messages/m1"),
      ("chats/{c}/messages/{m}", "chats/c1"), ("chats/c1", "chats/c2"),
      ("{up=**}/messages/{m}", "chats/c1/texts/m1"), ("a/{b}/c/{rest=**}", "a/b"),
    ]
  )
  func refusals(pattern: String, path: String) throws {
    let pattern = try PathPattern(pattern)

    #expect(pattern.match(ResourcePath(slashSeparated: path)) == nil)
  }

  @Test(
    "A malformed pattern is refused with what to change",
    arguments: [
      ("", "is empty"), ("chats", "names a collection"), ("chats/{id", "malformed segment"),
      ("chats//x/y", "malformed segment"), ("{a}/{a}", "captures one name twice"),
      ("{a=**}/{b=**}", "more than one **"), ("chats/{1}", "malformed segment"),
      ("chats/{a=x}", "malformed segment"),
    ]
  )
  func malformed(text: String, reason: String) {
    let error = #expect(throws: StatusError.self) { try PathPattern(text) }

    #expect(error?.statusMessage.contains(reason) == true)
  }
}
