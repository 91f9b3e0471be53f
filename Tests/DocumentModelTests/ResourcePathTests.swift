import DocumentModel
import Testing

@Suite("Resource names")
struct ResourcePathTests {
  private static let root = "projects/p/databases/(default)/documents"

  @Test("A document's name is read and written")
  func readsNames() throws {
    let text = "\(Self.root)/chats/c1/messages/é é"
    let name = try #require(DocumentName(text))

    #expect(name.description == text)
    #expect(name.id == "é é")
    #expect(name.collectionID == "messages")
    #expect(name.collection.description == "chats/c1/messages")
    #expect(name.database == DatabaseName(project: "p"))
  }

  @Test(
    "What is no document's name is refused",
    arguments: [
      "", "a/b", root, "\(root)/c", "\(root)/c/d/e", "\(root)/c/", "\(root)//d", "/\(root)/c/d",
      "\(root)/c/d/", "projects//databases/d/documents/c/d", "projects/p/databases//documents/c/d",
      "project/p/databases/d/documents/c/d", "projects/p/database/d/documents/c/d",
      "projects/p/databases/d/docs/c/d",
    ]
  )
  func refusesNames(text: String) {
    #expect(DocumentName(text) == nil)
  }

  @Test("A database's name is read and written")
  func readsDatabases() {
    #expect(DatabaseName("projects/p/databases/d") == DatabaseName(project: "p", database: "d"))
    #expect(DatabaseName(project: "p").description == "projects/p/databases/(default)")
    for text in [
      "", "projects/p/databases", "projects/p/databases/", "projects//databases/d",
      "projects/p/databases/d/documents", "a/p/databases/d",
    ] {
      #expect(DatabaseName(text) == nil)
    }
  }

  @Test("Paths know whether they name a document or a collection")
  func kinds() {
    let root = ResourcePath()
    let collection = ResourcePath(slashSeparated: "c")
    let document = ResourcePath(slashSeparated: "c/d")

    #expect(!root.isDocument && !root.isCollection && root.id == nil && root.parent == root)
    #expect(collection.isCollection && !collection.isDocument)
    #expect(document.isDocument && document.parent == collection)
    #expect(collection.appending("d") == document)
    #expect(document.isBelowOrEqual(to: collection) && document.isBelowOrEqual(to: root))
    #expect(!ResourcePath(["cd"]).isBelowOrEqual(to: collection))
    #expect(ResourcePath(slashSeparated: "/c//d/").segments == ["", "c", "", "d", ""])
  }

  @Test("Paths come in order of their ids, a parent first")
  func order() {
    let paths = [
      "a", "a/__id-1__", "a/__id2__", "a/__id10__", "a/B", "a/b", "a/b/c", "a/b/c/d", "a/é",
    ]
    .map { ResourcePath(slashSeparated: $0) }

    #expect(paths.shuffled().sorted() == paths)
  }
}
