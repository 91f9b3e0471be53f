import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
import NIOCore
import RuntimeSupport

/// An answer of the gateway itself, in the form that the caller reads.
struct OwnAnswer: Equatable {
  var code: StatusCode
  var message: String
  /// Another status than the code's.
  var httpStatus: Int?
  /// What is left of a body that was not read is not worth reading.
  var closes: Bool
  /// Whether the worker went down with the request.
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

  /// The refusal of a body that is too long.
  static func tooLarge(_ bytesMax: Int) -> OwnAnswer {
    OwnAnswer(
      .invalidArgument,
      "The request's body is longer than \(bytesMax) bytes.",
      httpStatus: 413,
      closes: true
    )
  }

  /// Whether a callable's client reads a stream: only this very text says so.
  static func wantsStream(_ request: Request) -> Bool {
    request.headers[.accept] == streamType
  }

  /// What a client accepts that reads a stream.
  static let streamType = "text/event-stream"

  private static let statusHeader = fieldName("x-google-status")

  /// The response, CORS headers included.
  func response(to request: Request, isHTTP: Bool = false) -> Response {
    let policy: CORSPolicy = isHTTP ? .httpFunctions : .callables
    if let preflight = policy.preflight(request) { return preflight }
    var response: Response
    if !isHTTP, request.method == .post, Self.wantsStream(request) {
      response = Response(
        status: .ok,
        headers: [.contentType: "text/event-stream", .cacheControl: "no-cache"],
        body: ResponseBody(byteBuffer: frame)
      )
    } else {
      response = .error(code, message, form: .callable, httpStatus: httpStatus)
      if isHTTP, isCrash { response.headers[Self.statusHeader] = "crash" }
    }
    policy.apply(to: &response, for: request)
    if closes { response.headers[.connection] = "close" }
    return response
  }

  /// The answer as the last event of a stream.
  var frame: ByteBuffer {
    let error = #"{"message":\#(jsonQuoted(message)),"status":"\#(code.name)"}"#
    return ByteBuffer(string: "data: {\"error\":\(error)}\n\n")
  }
}
