/// Sends HTTP requests: `OutboundClient` over the network, or a scripted one in a test.
public protocol HTTPTransport: Sendable {
  /// Sends a request and waits for the whole response; any status is a response, not an error.
  ///
  /// Throws `OutboundHTTPError` when no response came. Cancelling the task ends the exchange.
  func send(_ request: OutboundRequest) async throws -> OutboundResponse

  /// Sends a request and returns when the response's head is there.
  ///
  /// The body is bounded in memory: the sender is held up while the reader is slow. Releasing the
  /// body, or cancelling the task that reads it, ends the exchange.
  /// Throws `OutboundHTTPError` as `send` does.
  func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse
}

extension HTTPTransport {
  /// A stream of one piece, for transports that only know whole responses.
  ///
  /// Throws `OutboundHTTPError` as `send` does.
  public func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    let response = try await send(request)
    return OutboundStreamedResponse(
      status: response.status,
      headers: response.headers,
      body: OutboundBody(response.body.isEmpty ? [] : [response.body])
    )
  }
}
