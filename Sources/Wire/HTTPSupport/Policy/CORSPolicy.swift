package import HTTPTypes

/// A policy on which scripts of other origins may use an endpoint, and how.
///
/// The origin is reflected, so that credentials may be used. Apply the policy to every response,
/// including errors; otherwise browsers hide the error from the page that caused it.
package struct CORSPolicy: Sendable {
  /// The methods that a preflight allows, as written in the header.
  package var methods: String
  /// The response headers that scripts may read, as written in the header; nil for the simple ones.
  package var exposedHeaders: String?
  package var allowsCredentials: Bool
  package var preflightStatus: HTTPResponse.Status

  package init(
    methods: String,
    exposedHeaders: String? = nil,
    allowsCredentials: Bool = false,
    preflightStatus: HTTPResponse.Status = .noContent
  ) {
    self.methods = methods
    self.exposedHeaders = exposedHeaders
    self.allowsCredentials = allowsCredentials
    self.preflightStatus = preflightStatus
  }

  package static let callables = CORSPolicy(methods: "POST")

  /// The policy of plain HTTP functions that enable CORS.
  package static let httpFunctions = CORSPolicy(methods: "GET,HEAD,PUT,PATCH,POST,DELETE")

  /// The policy of Firestore's REST API.
  package static let firestore = CORSPolicy(
    methods: "GET,POST,PUT,PATCH,DELETE,HEAD",
    exposedHeaders: "X-HTTP-Session-Id,X-Client-Wire-Protocol,Content-Type",
    allowsCredentials: true,
    preflightStatus: .ok
  )

  /// Returns the response to an `OPTIONS` request, with its headers; nil for any other method.
  package func preflight(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.method == .options else { return nil }
    var response = HTTPResponse(status: preflightStatus)
    response.headerFields[.contentLength] = "0"
    response.headerFields[.accessControlAllowMethods] = methods
    if let requested = request.headerFields[.accessControlRequestHeaders] {
      response.headerFields[.accessControlAllowHeaders] = requested
    }
    apply(to: &response, for: request)
    vary(&response, "Access-Control-Request-Headers")
    return response
  }

  /// Adds the CORS headers to a response that is not a preflight response.
  package func apply(to response: inout HTTPResponse, for request: HTTPRequest) {
    vary(&response, "Origin")
    guard let origin = request.headerFields[.origin] else { return }
    response.headerFields[.accessControlAllowOrigin] = origin
    if allowsCredentials { response.headerFields[.accessControlAllowCredentials] = "true" }
    if let exposedHeaders {
      response.headerFields[.accessControlExposeHeaders] = exposedHeaders
    }
  }

  private func vary(_ response: inout HTTPResponse, _ name: String) {
    guard let present = response.headerFields[.vary] else {
      response.headerFields[.vary] = name
      return
    }
    guard !present.lowercased().contains(name.lowercased()) else { return }
    response.headerFields[.vary] = "\(present), \(name)"
  }
}
