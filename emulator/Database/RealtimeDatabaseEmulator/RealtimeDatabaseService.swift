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

  /// Ends the connections of all clients that stay connected.
  package func endAll() {}

  /// Returns the response to a request.
  package func respond(to request: Request) async -> Response {
    .error(.notFound, "There is no \(request.path).")
  }
}
