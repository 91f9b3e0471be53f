import HTTPMessages
import HTTPTypes
import NIOCore

/// The origins whose pages may call a function from a browser.
public enum CORSOrigins: Sendable, Hashable {
  /// Pages of all origins. The response repeats the origin of the request.
  case any
  /// No pages of other origins: browsers hide the responses from the pages that sent the requests.
  case none
  /// Only pages of these origins, such as `https://app.example`.
  case only(Set<String>)
  /// The default for the kind of function: `any` for callables, `none` for HTTP functions.
  case standard

  /// The origins; nil for `standard`, so that the app's defaults or the function's kind decide.
  var unlessStandard: CORSOrigins? { self == .standard ? nil : self }

  private func allowed(_ request: HTTPRequest) -> String? {
    guard let origin = request.headerFields[.origin] else { return nil }
    return switch self {
    case .any: origin
    case .none, .standard: nil
    case .only(let origins): origins.contains(origin) ? origin : nil
    }
  }

  /// Adds the CORS headers that allow a page to read the response.
  func apply(to head: inout HTTPResponse, for request: HTTPRequest) {
    guard self != .none else { return }
    head.headerFields[.accessControlAllowOrigin] = allowed(request)
    let present = head.headerFields[.vary]
    guard !(present?.lowercased().contains("origin") ?? false) else { return }
    head.headerFields[.vary] = present.map { "\($0), Origin" } ?? "Origin"
  }

  /// Returns the response to a preflight request, which asks whether a page may send a request.
  func preflight(for request: HTTPRequest, methods: String) -> Response {
    var head = HTTPResponse(status: .noContent)
    head.headerFields[.contentLength] = "0"
    if self != .none {
      head.headerFields[.accessControlAllowOrigin] = allowed(request)
      head.headerFields[.accessControlAllowMethods] = methods
      head.headerFields[.accessControlAllowHeaders] =
        request.headerFields[.accessControlRequestHeaders]
    }
    head.headerFields[.vary] = "Origin, Access-Control-Request-Headers"
    return Response(head: head, body: .whole(ByteBuffer()))
  }
}
