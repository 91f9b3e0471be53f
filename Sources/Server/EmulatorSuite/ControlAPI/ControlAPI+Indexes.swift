import DocumentModel
import HTTPSupport
import Invocation
import QueryEngine

extension ControlAPI {
  /// `GET /hearth/v1/indexes?database=(default)`: what production needs for the queries so far, in the
  /// form of `firestore.indexes.json`.
  func indexes(_ query: QueryParameters) -> Response {
    let database = DatabaseName(project: project, database: query["database"] ?? "(default)")
    return .json(DeclaredIndexes.file(of: queries.neededIndexes(database)))
  }
}
