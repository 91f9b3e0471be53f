import DocumentModel
import QueryEngine

/// A target that has been checked.
enum PreparedTarget: Sendable {
  case results(PreparedQuery)
  case window(PreparedQuery)
  case documents([DocumentName], DatabaseName)

  var subject: ListenTable.Subject {
    switch self {
    case .results(let query), .window(let query): .query(query.query)
    case .documents(let names, _): .documents(names)
    }
  }

  var database: DatabaseName {
    switch self {
    case .results(let query), .window(let query): query.query.database
    case .documents(_, let database): database
    }
  }
}
