import DocumentModel
import HTTPMessages
import HTTPSupport
import QueryEngine

extension ControlAPI {
  /// Handles `GET /hearth/v1/indexes?database=(default)`.
  ///
  /// Returns the indexes that production needs for the queries so far, as `firestore.indexes.json`.
  func indexes(_ query: QueryParameters) -> Response {
    let database = DatabaseName(project: project, database: query["database"] ?? "(default)")
    return .json(DeclaredIndexes.file(of: queries.neededIndexes(database)))
  }
}
