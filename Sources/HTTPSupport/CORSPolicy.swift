package import HTTPTypes
package import HummingbirdCore

/// Which scripts of other origins may talk to a door, and how.
///
/// The origin is reflected, so credentials may be used. Apply it to every reply, errors too, or
/// browsers hide the error from the page that caused it.
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

  /// What callables answer.
  package static let callables = CORSPolicy(methods: "POST")

  /// What plain HTTP functions answer when they ask for CORS.
  package static let httpFunctions = CORSPolicy(methods: "GET,HEAD,PUT,PATCH,POST,DELETE")

  /// What Firestore's REST surface answers.
  package static let firestore = CORSPolicy(
    methods: "GET,POST,PUT,PATCH,DELETE,HEAD",
    exposedHeaders: "X-HTTP-Session-Id,X-Client-Wire-Protocol,Content-Type",
    allowsCredentials: true,
    preflightStatus: .ok
  )

  /// The answer to an `OPTIONS` request, headers included; nil for any other method.
  package func preflight(_ request: Request) -> Response? {
    guard request.method == .options else { return nil }
    var response = Response(status: preflightStatus)
    response.headers[.contentLength] = "0"
    response.headers[.accessControlAllowMethods] = methods
    if let requested = request.headers[.accessControlRequestHeaders] {
      response.headers[.accessControlAllowHeaders] = requested
    }
    apply(to: &response, for: request)
    vary(&response, "Access-Control-Request-Headers")
    return response
  }

  /// Adds the headers that a real reply needs.
  package func apply(to response: inout Response, for request: Request) {
    vary(&response, "Origin")
    guard let origin = request.headers[.origin] else { return }
    response.headers[.accessControlAllowOrigin] = origin
    if allowsCredentials { response.headers[.accessControlAllowCredentials] = "true" }
    if let exposedHeaders { response.headers[.accessControlExposeHeaders] = exposedHeaders }
  }

  private func vary(_ response: inout Response, _ name: String) {
    guard let present = response.headers[.vary] else {
      response.headers[.vary] = name
      return
    }
    guard !present.lowercased().contains(name.lowercased()) else { return }
    response.headers[.vary] = "\(present), \(name)"
  }
}
