import HTTPTypes
import Invocation
import NIOCore

/// Which pages of other origins may talk to a function from a browser.
public enum CORSOrigins: Sendable, Hashable {
  /// All pages; the origin is reflected.
  case any
  /// No page: browsers hide the replies from the pages that asked.
  case none
  /// Pages of these origins, such as `https://app.example`, and no others.
  case only(Set<String>)
  /// The usual origins for the kind of function: `any` for callables, `none` for HTTP functions.
  case standard

  /// These origins; nil when the app's defaults or the function's kind decide.
  var unlessStandard: CORSOrigins? { self == .standard ? nil : self }

  private func allowed(_ request: HTTPRequest) -> String? {
    guard let origin = request.headerFields[.origin] else { return nil }
    return switch self {
    case .any: origin
    case .none, .standard: nil
    case .only(let origins): origins.contains(origin) ? origin : nil
    }
  }

  /// Adds the headers that a reply needs so that a page may read it.
  func apply(to head: inout HTTPResponse, for request: HTTPRequest) {
    guard self != .none else { return }
    head.headerFields[.accessControlAllowOrigin] = allowed(request)
    let present = head.headerFields[.vary]
    guard !(present?.lowercased().contains("origin") ?? false) else { return }
    head.headerFields[.vary] = present.map { "\($0), Origin" } ?? "Origin"
  }

  /// The answer to a browser that asks whether a page may send a request.
  func preflight(for request: HTTPRequest, methods: String) -> InvocationReply {
    var head = HTTPResponse(status: .noContent)
    head.headerFields[.contentLength] = "0"
    if self != .none {
      head.headerFields[.accessControlAllowOrigin] = allowed(request)
      head.headerFields[.accessControlAllowMethods] = methods
      head.headerFields[.accessControlAllowHeaders] =
        request.headerFields[.accessControlRequestHeaders]
    }
    head.headerFields[.vary] = "Origin, Access-Control-Request-Headers"
    return InvocationReply(head: head, body: .whole(ByteBuffer()))
  }
}
