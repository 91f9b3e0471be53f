import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore

/// Replies in the form that clients of callables understand, CORS headers included.
///
/// Without those a browser hides even the error from the page, so every reply has them.
enum CallableReply {
  /// The answer to a browser's question whether it may call: it may, from anywhere, by POST.
  static func preflight(for request: HTTPRequest) -> InvocationReply {
    var head = HTTPResponse(status: .noContent)
    head.headerFields[.contentLength] = "0"
    head.headerFields[.accessControlAllowMethods] = "POST"
    head.headerFields[.accessControlAllowHeaders] =
      request.headerFields[.accessControlRequestHeaders]
    allowOrigin(of: request, in: &head)
    head.headerFields[.vary] = "Origin, Access-Control-Request-Headers"
    return InvocationReply(head: head, body: .whole(ByteBuffer()))
  }

  /// A reply of JSON text.
  static func json(
    _ bytes: [UInt8],
    status: HTTPResponse.Status,
    for request: HTTPRequest
  ) -> InvocationReply {
    var head = HTTPResponse(status: status)
    head.headerFields[.contentType] = "application/json; charset=utf-8"
    head.headerFields[.contentLength] = String(bytes.count)
    head.headerFields[.vary] = "Origin"
    allowOrigin(of: request, in: &head)
    return InvocationReply(head: head, body: .whole(ByteBuffer(bytes: bytes)))
  }

  /// An error reply: `{"error": {"status", "message", "details"?}}`.
  ///
  /// The HTTP status is the code's, unless `httpStatus` says otherwise.
  static func error(
    _ code: StatusCode,
    _ message: String,
    details: Value? = nil,
    httpStatus: Int? = nil,
    for request: HTTPRequest
  ) -> InvocationReply {
    let code = code == .ok ? .internal : code
    var writer = JSONWriter()
    writer.append(syntax: #"{"error":{"#)
    if let details {
      var detailsWriter = JSONWriter()
      // Details that JSON cannot express are left out: the error itself matters more.
      if (try? detailsWriter.append(details)) != nil {
        writer.append(syntax: #""details":"#)
        writer.append(json: detailsWriter.bytes)
        writer.append(syntax: ",")
      }
    }
    writer.append(syntax: #""message":"#)
    writer.append(message)
    writer.append(syntax: #","status":"#)
    writer.append(code.name)
    writer.append(syntax: "}}")
    let status = HTTPResponse.Status.numbered(httpStatus ?? code.httpStatus)
    return json(writer.bytes, status: status, for: request)
  }

  private static func allowOrigin(of request: HTTPRequest, in head: inout HTTPResponse) {
    guard let origin = request.headerFields[.origin] else { return }
    head.headerFields[.accessControlAllowOrigin] = origin
  }
}
