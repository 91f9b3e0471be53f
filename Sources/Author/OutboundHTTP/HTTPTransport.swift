/// A client for HTTP requests: `OutboundClient`, `URLSessionTransport`, or a scripted one in tests.
public protocol HTTPTransport: Sendable {
  /// Sends a request and waits for the complete response.
  ///
  /// A response with any status is a result, not an error. Throws `OutboundHTTPError` if no
  /// response arrives. If the task is cancelled, the request ends.
  func send(_ request: OutboundRequest) async throws -> OutboundResponse

  /// Sends a request and returns as soon as the head of the response has arrived.
  ///
  /// The memory for the body is limited: the sender has to wait while the reader is slow. The
  /// request ends if the body is released or the task that reads it is cancelled. Throws
  /// `OutboundHTTPError` under the same conditions as `send`.
  func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse
}

extension HTTPTransport {
  /// Sends a request and returns its complete response as a stream of one chunk.
  ///
  /// This default is for transports that support only complete responses. Throws
  /// `OutboundHTTPError` under the same conditions as `send`.
  public func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    let response = try await send(request)
    return OutboundStreamedResponse(
      status: response.status,
      headers: response.headers,
      body: OutboundBody(response.body.isEmpty ? [] : [response.body])
    )
  }
}
