import DocumentModel
import HTTPTypes
import Testing

@testable import FirestoreEmulator

@Suite("REST routes")
struct RESTRouteTests {
  private static let root = "/v1/projects/p/databases/(default)/documents"
  private static let name = "projects/p/databases/(default)/documents"

  @Test(
    "A method and a path make a route",
    arguments: [
      (.get, "/", .liveness),
      (.get, "\(root)/c/a", .getDocument(name: "\(name)/c/a")),
      (.get, "\(root)/c/a%20b", .getDocument(name: "\(name)/c/a b")),
      (.get, "\(root)/c", .listDocuments(parent: name, collectionID: "c")),
      (.get, "\(root)/c/a/d", .listDocuments(parent: "\(name)/c/a", collectionID: "d")),
      (.post, "\(root)/c/a/d", .createDocument(parent: "\(name)/c/a", collectionID: "d")),
      (.patch, "\(root)/c/a", .updateDocument(name: "\(name)/c/a")),
      (.delete, "\(root)/c/a", .deleteDocument(name: "\(name)/c/a")),
      (.post, "\(root):commit", .database(.commit, name: "projects/p/databases/(default)")),
      (.post, "\(root)/c/a:runQuery", .parent(.runQuery, name: "\(name)/c/a")),
      (.post, "\(root):listCollectionIds", .parent(.listCollectionIds, name: name)),
      (.post, "\(root):partitionQuery", .parent(.partitionQuery, name: name)),
      // A colon in an ID introduces a verb only where the API defines one, and never when encoded.
      (.post, "\(root)/c:commit", .createDocument(parent: name, collectionID: "c:commit")),
      (.post, "\(root)/c%3ArunQuery", .createDocument(parent: name, collectionID: "c:runQuery")),
      (.get, "\(root)/c/a:runQuery", .getDocument(name: "\(name)/c/a:runQuery")),
      (
        .delete, "/emulator/v1/projects/p/databases/%28default%29/documents",
        .reset(DatabaseName(project: "p"))
      ),
    ] as [(HTTPRequest.Method, String, RESTRoute)]
  )
  func route(method: HTTPRequest.Method, path: String, route: RESTRoute) {
    #expect(RESTRoute(method: method, path: path) == route)
  }
}
