package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identifiers
import JSONText
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The console: a web page that shows what the suite does, and the requests of that page.
///
/// The page is served to everyone who may use the suite's ports. It holds nothing secret: its
/// requests carry a token, which only `GET /session` hands out. A browser lets no page of another
/// origin read that response, and the service refuses frames and foreign hosts.
package struct ConsoleService: Sendable {
  /// A function that handles the page's requests to one of the suite's services.
  package typealias Backend = @Sendable (Request, HTTPContext) async throws -> Response

  private let suiteToken: SecretToken
  private let session: SecretToken
  private let description: @Sendable () throws -> any Encodable & Sendable
  private let backends: [String: Backend]

  /// Creates the console of a suite.
  ///
  /// - `suiteToken` opens a session from another machine.
  /// - `description` returns what the page shows of the suite: project and addresses.
  /// - `backends` handle the requests below `/api/NAME/`, by name; they receive the rest of the
  ///   path. A backend decides which of its paths the page may use.
  package init(
    suiteToken: SecretToken,
    sessionToken: SecretToken = SecretToken(RandomID.make(length: 40)),
    description: @escaping @Sendable () throws -> any Encodable & Sendable,
    backends: [String: Backend]
  ) {
    self.suiteToken = suiteToken
    session = sessionToken
    self.description = description
    self.backends = backends
  }

  /// Responds to one request of a browser.
  package func respond(to request: Request, _ context: HTTPContext) async -> Response {
    do {
      var response = try await answer(request, context)
      Self.protect(&response)
      return response
    } catch {
      var response = Response.error(error)
      Self.protect(&response)
      return response
    }
  }

  private func answer(_ request: Request, _ context: HTTPContext) async throws -> Response {
    let path = request.path
    if path.hasPrefix(Self.apiPrefix) { return try await forward(request, context) }
    guard request.method == .get || request.method == .head else {
      throw StatusError(.unimplemented, "The console has no \(request.method) \(path).")
    }
    if path == "/session" { return try openSession(request, context) }
    guard let asset = ConsoleAsset.named(path) else {
      throw StatusError(.notFound, "The console has no page \(path); it is at the path /.")
    }
    return asset.response(to: request)
  }

  // MARK: - Sessions

  private struct Session: Encodable {
    var token: String
    var suite: AnyEncodable
  }

  private struct AnyEncodable: Encodable {
    let value: any Encodable & Sendable

    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
  }

  /// Returns the token for the page's requests.
  ///
  /// A page on this machine gets it by itself. `Sec-Fetch-Site` shows that the console's own page
  /// asks; browsers do not let scripts set it, and programs that only follow a URL do not send it.
  private func openSession(_ request: Request, _ context: HTTPContext) throws -> Response {
    let isOwnPage =
      context.isFromThisMachine && Self.fetchSite.flatMap { request.headers[$0] } == "same-origin"
    guard isOwnPage || suiteToken.isBearer(of: request.headers) else {
      throw StatusError(
        .permissionDenied,
        "Only a browser on the machine of the suite opens the console by itself. Elsewhere it asks "
          + "for the token of DATA/server.json; or forward the port: ssh -L 4000:127.0.0.1:4000."
      )
    }
    return try .json(
      encoding: Session(token: session.text, suite: AnyEncodable(value: try description()))
    )
  }

  // MARK: - Requests to the services

  private func forward(_ request: Request, _ context: HTTPContext) async throws -> Response {
    guard let token = Self.tokenHeader.flatMap({ request.headers[$0] }), session.matches(token)
    else {
      throw StatusError(
        .unauthenticated,
        "The request lacks this suite's console token; reload the console."
      )
    }
    let rest = (request.head.path ?? "").dropFirst(Self.apiPrefix.count)
    let name = rest.prefix { $0 != "/" && $0 != "?" }
    guard let backend = backends[String(name)] else {
      let names = backends.keys.sorted().joined(separator: ", ")
      throw StatusError(.notFound, "The suite has no service \(name) for the console: \(names).")
    }
    var head = request.head
    let path = rest.dropFirst(name.count)
    head.path = path.hasPrefix("/") ? String(path) : "/" + path
    if let name = Self.tokenHeader { head.headerFields[name] = nil }
    var response = try await backend(
      Request(head: head, body: request.body, hold: request.hold),
      context
    )
    // A function's response must not act on the console's own site.
    for name in Self.siteFields { response.headers[name] = nil }
    return response
  }

  // MARK: - Headers

  /// Adds the headers that keep other sites and injected scripts out of the page.
  private static func protect(_ response: inout Response) {
    for (name, value) in protections { response.headers[name] = value }
    if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
  }

  private static let protections: [(HTTPField.Name, String)] = [
    (
      "content-security-policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
  ].compactMap { name, value in HTTPField.Name(name).map { ($0, value) } }

  private static let siteFields = ["set-cookie", "clear-site-data", "refresh", "link"].compactMap {
    HTTPField.Name($0)
  }
  private static let apiPrefix = "/api/"
  private static let tokenHeader = HTTPField.Name("X-Hearth-Console")
  private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")
}
