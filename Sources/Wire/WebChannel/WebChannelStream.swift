package import HTTPSupport
package import HTTPTypes

/// A session for its handler: a stream of JSON messages in both directions.
package struct WebChannelStream: Sendable {
  /// The header fields of the opening request, and those carried in its body or URL.
  ///
  /// For a repeated field the last value is used.
  package let headers: HTTPFields
  /// The query parameters of the opening request.
  package let parameters: QueryParameters
  private let session: WebChannelSession

  init(headers: HTTPFields, parameters: QueryParameters, session: WebChannelSession) {
    self.headers = headers
    self.parameters = parameters
    self.session = session
  }

  /// Returns the client's next message; only one task at a time may call it.
  ///
  /// Each message is returned once, in order. Throws `CancellationError` once the client has ended
  /// the session or was away for too long.
  package func next() async throws -> String { try await session.next() }

  /// Sends a message, whose JSON is created once there is room for it.
  ///
  /// Waits while the client leaves too much unacknowledged. It also waits while all clients
  /// together do and this client already has its share. Throws as `next()` and `make` do.
  package func send(_ make: () async throws -> String) async throws {
    try await session.waitForRoom()
    session.send(try await make())
  }
}
