package import HTTPTypes

/// Which scripts of other origins may talk to a door, and how.
///
/// The origin is reflected, so credentials may be used. Apply the policy to every reply, including
/// errors, or browsers hide the error from the page that caused it.
package struct CORSPolicy: Sendable {
  /// Methods that a preflight allows, as the header lists them.
  package var methods: String
  /// Reply headers that scripts may read, as the header lists them; nil for the simple ones only.
  package var exposedHeaders: String?
  package var allowsCredentials: Bool
  package var preflightStatus: HTTPResponse.Status

  /// A policy of its own.
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

  /// The policy of callables.
  package static let callables = CORSPolicy(methods: "POST")

  /// The policy of plain HTTP functions that ask for CORS.
  package static let httpFunctions = CORSPolicy(methods: "GET,HEAD,PUT,PATCH,POST,DELETE")

  /// The policy of Firestore's REST surface.
  package static let firestore = CORSPolicy(
    methods: "GET,POST,PUT,PATCH,DELETE,HEAD",
    exposedHeaders: "X-HTTP-Session-Id,X-Client-Wire-Protocol,Content-Type",
    allowsCredentials: true,
    preflightStatus: .ok
  )

  /// The answer to an `OPTIONS` request, headers included; nil for any other method.
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

  /// Adds the headers that a real reply needs.
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
