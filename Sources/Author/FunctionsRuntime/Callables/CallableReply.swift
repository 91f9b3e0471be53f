import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore

/// Replies in the form that clients of callables understand, including CORS headers.
///
/// Without these headers a browser hides even the error from the page, so every reply has them.
enum CallableReply {
  /// The answer to a browser that asks whether it may call by POST.
  static func preflight(for request: HTTPRequest, _ origins: CORSOrigins) -> InvocationReply {
    origins.preflight(for: request, methods: "POST")
  }

  /// A reply of JSON text.
  static func json(
    _ bytes: [UInt8],
    status: HTTPResponse.Status,
    for request: HTTPRequest,
    _ origins: CORSOrigins = .any
  ) -> InvocationReply {
    var head = HTTPResponse(status: status)
    head.headerFields[.contentType] = "application/json; charset=utf-8"
    head.headerFields[.contentLength] = String(bytes.count)
    origins.apply(to: &head, for: request)
    return InvocationReply(head: head, body: .whole(ByteBuffer(bytes: bytes)))
  }

  /// A stream of events, which `produce` writes.
  static func eventStream(
    for request: HTTPRequest,
    _ origins: CORSOrigins,
    _ produce: @escaping @Sendable (@escaping InvocationReply.Body.Write) async throws -> Void
  ) -> InvocationReply {
    var head = HTTPResponse(status: .ok)
    head.headerFields[.contentType] = ServerSentEvents.mediaType
    head.headerFields[.cacheControl] = "no-cache"
    head.headerFields[fieldName("x-accel-buffering")] = "no"
    origins.apply(to: &head, for: request)
    return InvocationReply(head: head, body: .produced(produce))
  }

  /// An error reply: `{"error": {"status", "message", "details"?}}`.
  ///
  /// The HTTP status is the code's, unless `httpStatus` says otherwise. A caller that asks for a
  /// stream gets the error as its only event, with status 200.
  static func error(
    _ code: StatusCode,
    _ message: String,
    httpStatus: Int? = nil,
    for request: HTTPRequest,
    _ origins: CORSOrigins = .any
  ) -> InvocationReply {
    let json = CallableErrorEnvelope.json(code, message)
    if ServerSentEvents.areWanted(by: request) {
      return eventStream(for: request, origins) { try await $0(ServerSentEvents.frame(json)) }
    }
    let status = HTTPResponse.Status.numbered(httpStatus ?? code.httpStatus)
    return self.json(json, status: status, for: request, origins)
  }
}
