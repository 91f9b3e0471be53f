import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import StatusCodes

/// The HTTP responses that clients of callables understand, including CORS headers.
///
/// Every response has these headers. Without them a browser would hide even an error from the page.
enum CallableReply {
  /// Returns the response to the preflight request of a browser that wants to call by POST.
  static func preflight(for request: HTTPRequest, _ origins: CORSOrigins) -> Response {
    origins.preflight(for: request, methods: "POST")
  }

  /// Returns a response whose body is JSON text.
  static func json(
    _ bytes: [UInt8],
    status: HTTPResponse.Status,
    for request: HTTPRequest,
    _ origins: CORSOrigins = .any
  ) -> Response {
    var head = HTTPResponse(status: status)
    head.headerFields[.contentType] = "application/json; charset=utf-8"
    head.headerFields[.contentLength] = String(bytes.count)
    origins.apply(to: &head, for: request)
    return Response(head: head, body: .whole(ByteBuffer(bytes: bytes)))
  }

  /// Returns a response whose body is a stream of events that `produce` writes.
  static func eventStream(
    for request: HTTPRequest,
    _ origins: CORSOrigins,
    _ produce: @escaping @Sendable (@escaping Response.Body.Write) async throws -> Void
  ) -> Response {
    var head = HTTPResponse(status: .ok)
    head.headerFields[.contentType] = ServerSentEvents.mediaType
    head.headerFields[.cacheControl] = "no-cache"
    head.headerFields[fieldName("x-accel-buffering")] = "no"
    origins.apply(to: &head, for: request)
    return Response(head: head, body: .produced(produce))
  }

  /// Returns an error response with the body `{"error": {"status", "message", "details"?}}`.
  ///
  /// The HTTP status is `httpStatus`, or by default the one that corresponds to the code. A caller
  /// that asks for a stream receives the error as the only event of a response with status 200.
  static func error(
    _ code: StatusCode,
    _ message: String,
    httpStatus: Int? = nil,
    for request: HTTPRequest,
    _ origins: CORSOrigins = .any
  ) -> Response {
    let json = GoogleErrorBody.callable(code, message)
    if ServerSentEvents.areWanted(by: request) {
      return eventStream(for: request, origins) { try await $0(ServerSentEvents.frame(json)) }
    }
    let status = HTTPResponse.Status.numbered(httpStatus ?? code.httpStatus)
    return self.json(json, status: status, for: request, origins)
  }
}
