import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import StatusCodes

/// An error response that the gateway creates itself, in the format that the caller reads.
struct GatewayErrorResponse: Equatable {
  var code: StatusCode
  var message: String
  /// The HTTP status, if it differs from the status of `code`.
  var httpStatus: Int?
  /// True if the connection closes, because the unread rest of the body is not worth reading.
  var closes: Bool
  /// True if the worker crashed or failed during the request.
  var isCrash: Bool

  init(
    _ code: StatusCode,
    _ message: String,
    httpStatus: Int? = nil,
    closes: Bool = false,
    isCrash: Bool = false
  ) {
    self.code = code
    self.message = message
    self.httpStatus = httpStatus
    self.closes = closes
    self.isCrash = isCrash
  }

  /// Creates the error for a request whose body is too long, malformed or incomplete.
  init(brokenBody error: any Error) {
    switch error {
    case let error as BodyTooLargeError:
      let message = "The request's body is longer than \(error.bytesMax) bytes."
      self.init(.invalidArgument, message, httpStatus: 413, closes: true)
    case let error as BodyTooSlowError:
      self.init(error.statusCode, error.statusMessage, httpStatus: 408, closes: true)
    case let error as any StatusConvertible:
      self.init(error.statusCode, error.statusMessage, closes: true)
    default: self.init(.cancelled, "The request's body did not arrive.", closes: true)
    }
  }

  private static let statusHeader = fieldName("x-google-status")

  /// Creates the response, including CORS headers.
  ///
  /// For a preflight request, this is the response to the preflight.
  func reply(to request: HTTPRequest, isHTTP: Bool = false) -> Response {
    let policy: CORSPolicy = isHTTP ? .httpFunctions : .callables
    if let preflight = policy.preflight(request) {
      return Response(head: preflight, body: .whole(ByteBuffer()))
    }
    var head = HTTPResponse(status: .numbered(httpStatus ?? code.httpStatus))
    var body = ByteBuffer(bytes: json)
    if !isHTTP, request.method == .post, ServerSentEvents.areWanted(by: request) {
      head = HTTPResponse(status: .ok)
      head.headerFields[.contentType] = ServerSentEvents.mediaType
      head.headerFields[.cacheControl] = "no-cache"
      body = frame
    } else {
      head.headerFields[.contentType] = "application/json; charset=utf-8"
      if isHTTP, isCrash { head.headerFields[Self.statusHeader] = "crash" }
    }
    head.headerFields[.contentLength] = String(body.readableBytes)
    policy.apply(to: &head, for: request)
    if closes { head.headerFields[.connection] = "close" }
    return Response(head: head, body: .whole(body))
  }

  /// The error as the last event of a stream.
  var frame: ByteBuffer { ServerSentEvents.frame(json) }

  private var json: [UInt8] { GoogleErrorBody.callable(code, message) }
}
