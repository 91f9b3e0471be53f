public import FirestoreClient

extension FunctionsSuite {
  /// Returns every document of the database by path, for example to compare two runs.
  ///
  /// Throws `FirestoreError`.
  public func documents() async throws -> [String: MapValue] {
    var documents: [String: MapValue] = [:]
    var collections = try await firestore.listCollections()
    while let collection = collections.popLast() {
      var token: String?
      repeat {
        let page = try await collection.listDocuments(pageToken: token)
        for snapshot in try await firestore.getAll(page.references) {
          if snapshot.exists { documents[snapshot.reference.path] = snapshot.fields }
          collections += try await snapshot.reference.listCollections()
        }
        token = page.nextPageToken
      } while token != nil
    }
    return documents
  }
}
