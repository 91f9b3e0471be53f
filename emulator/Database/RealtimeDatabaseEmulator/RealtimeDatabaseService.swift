package import DatabaseTree
package import HTTPMessages
package import HTTPSupport
import StatusCodes

/// The Realtime Database's port.
package struct RealtimeDatabaseService: Sendable {
  let database: RealtimeDatabase

  package init(database: RealtimeDatabase) {
    self.database = database
  }

  /// Returns the response to a request.
  package func respond(to request: Request) async -> Response {
    .error(.notFound, "There is no \(request.path).")
  }
}
