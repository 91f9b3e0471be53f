package import HTTPSupport
package import HTTPTypes

/// A session as its handler sees it: JSON messages in both directions.
package struct WebChannelStream: Sendable {
  /// The header fields of the opening request, and those that its body or address carries for it,
  /// of which the last counts.
  package let headers: HTTPFields
  /// The parameters of the opening request's address.
  package let parameters: QueryParameters
  private let session: WebChannelSession

  init(headers: HTTPFields, parameters: QueryParameters, session: WebChannelSession) {
    self.headers = headers
    self.parameters = parameters
    self.session = session
  }

  /// The client's next message, each once and in order; one task at a time.
  ///
  /// Throws `CancellationError` once the client has ended the session or was away for too long.
  package func next() async throws -> String { try await session.next() }

  /// Sends a message, which is made as JSON once there is room for it.
  ///
  /// Waits while the client leaves too much unacknowledged, and while all clients together do and this
  /// one has its share of that. Throws as `next()` and `make` do.
  package func send(_ make: () async throws -> String) async throws {
    try await session.waitForRoom()
    session.send(try await make())
  }
}
