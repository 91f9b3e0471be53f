import DocumentModel
import Foundation
import Testing

@Suite("Paths of documents")
struct DocumentPathTests {
  struct ChatID: RawRepresentable, PathParameter, Equatable {
    var rawValue: String
  }

  struct PagePath: DocumentPath, Equatable {
    var chat = ChatID(rawValue: "")
    var page = 0

    static let pattern: Pattern = "teams/red/chats/\(\.chat)/pages/\(\.page)"
  }

  struct OnlyPath: DocumentPath {
    static let pattern: Pattern = "settings/main"
  }

  @Test("A pattern has its properties' names, as Eventarc writes them")
  func text() {
    #expect(PagePath.pattern.text == "teams/red/chats/{chat}/pages/{page}")
    #expect("\(PagePath.pattern)" == PagePath.pattern.text)
    #expect(OnlyPath.pattern.text == "settings/main")
    #expect(PagePath.pattern.problems.isEmpty)
    #expect(OnlyPath.pattern.problems.isEmpty)
  }

  @Test("A path is read from its captures and written from its properties")
  func readsAndWrites() throws {
    let path = try PagePath.pattern.path(from: ["chat": "c1", "page": "7"])

    #expect(path == PagePath(chat: ChatID(rawValue: "c1"), page: 7))
    #expect(path.documentPath == ResourcePath(slashSeparated: "teams/red/chats/c1/pages/7"))
    #expect(OnlyPath().documentPath == ResourcePath(["settings", "main"]))
  }

  @Test(
    "An id of another type is refused, and so is one that its value would write differently",
    arguments: ["x", "07", "+7", "", "7 "]
  )
  func refuses(page: String) {
    let error = #expect(throws: PathParameterError.self) {
      try PagePath.pattern.path(from: ["chat": "c1", "page": page])
    }
    #expect(
      error?.message
        == "'\(page)' at {page} of \"teams/red/chats/{chat}/pages/{page}\" is not of type Int"
    )
  }

  @Test("A UUID is an id in capital letters only")
  func uuid() {
    let id = UUID()
    #expect(UUID.read(pathSegment: id.pathSegment) == id)

    struct DevicePath: DocumentPath {
      var device = UUID()
      static let pattern: Pattern = "devices/\(\.device)"
    }
    #expect(throws: PathParameterError.self) {
      try DevicePath.pattern.path(from: ["device": id.uuidString.lowercased()])
    }
  }

  @Test("A slash in an id stays inside its segment")
  func slash() {
    let path = PagePath(chat: ChatID(rawValue: "a/pages/b"), page: 1)
    #expect(path.documentPath.segments == ["teams", "red", "chats", "a/pages/b", "pages", "1"])
  }

  @Test("A property that the pattern lacks is a problem with its name")
  func missingProperty() {
    struct LongPath: DocumentPath {
      var userID = ""
      var chatID = ""
      static let pattern: Pattern = "users/\(\.userID)"
    }
    #expect(LongPath.pattern.problems.count == 1)
    #expect(LongPath.pattern.problems.first?.contains("LongPath has the property 'chatID'") == true)
  }
}
