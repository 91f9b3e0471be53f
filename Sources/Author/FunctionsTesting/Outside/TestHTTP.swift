import FlowControl
public import OutboundHTTP
import Synchronization

/// The scripted responses of all external servers that a test uses.
///
/// ```swift
/// suite.http.on("POST", "https://api.example.com/mail").respond(status: 202)
/// #expect(suite.http.requests("POST", "https://api.example.com/mail").count == 1)
/// ```
///
/// A request without a scripted response fails, and `settle` and the end of the suite report it.
/// URLs are compared without their query, unless the script includes a query. A `*` at the end of a
/// URL matches any suffix. If several scripts match, the latest applies.
public final class TestHTTP: HTTPTransport {
  private struct State {
    var routes: [HTTPRoute] = []
    var mounts: [(base: String, transport: any HTTPTransport)] = []
    var exchanges = RecentElements<HTTPExchange>(countMax: exchangesMax)
    var unscripted: [String] = []
  }

  /// The maximum number of recent exchanges that are kept.
  private static let exchangesMax = 10_000

  private let state = Mutex(State())

  init() {}

  // MARK: Scripting

  /// Returns the route for a method and a URL, to which `respond` and `fail` add responses.
  ///
  /// The same method and URL return the same route again, so you can add responses later.
  public func on(_ method: String, _ url: String) -> HTTPRoute {
    state.withLock { state in
      if let route = state.routes.first(where: { $0.method == method && $0.url == url }) {
        return route
      }
      let route = HTTPRoute(method: method, url: url)
      state.routes.append(route)
      return route
    }
  }

  /// Forwards every request below a URL to another transport, such as a fake of a provider.
  ///
  /// `base` consists of the scheme and the host, and optionally the beginning of the path. Routes
  /// made by `on` take precedence.
  public func mount(_ transport: any HTTPTransport, at base: String) {
    var base = base
    while base.hasSuffix("/") { base.removeLast() }
    state.withLock { $0.mounts.append((base, transport)) }
  }

  //MARK: Recorded requests

  /// The requests and their results, in the order in which they were answered.
  ///
  /// The last 10,000 exchanges are kept.
  public var exchanges: [HTTPExchange] { state.withLock { Array($0.exchanges) } }

  /// Returns the recorded requests that match a method and a URL, in order of completion.
  ///
  /// The URL may end in `*`, as in `on`.
  public func requests(_ method: String, _ url: String) -> [OutboundRequest] {
    exchanges.map(\.request).filter { HTTPRoute.fits($0, method: method, url: url) }
  }

  /// Returns the unscripted requests since the last call, and clears them.
  func takeUnscripted() -> [String] {
    state.withLock { state in
      defer { state.unscripted = [] }
      return state.unscripted
    }
  }

  // MARK: Sending

  /// Returns the scripted response to a request; throws `invalidRequest` if there is none.
  public func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    try await exchange(request, { try await $0.send(request) }) { $0 }
  }

  /// Returns the scripted response to a request as a stream.
  ///
  /// A mounted transport streams its response. A scripted body arrives in one piece. Throws
  /// `OutboundHTTPError` with the kind `invalidRequest` if nothing is scripted for the request.
  public func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    try await exchange(request, { try await $0.stream(request) }) { whole in
      OutboundStreamedResponse(
        status: whole.status,
        headers: whole.headers,
        body: OutboundBody([whole.body])
      )
    }
  }

  private enum Answerer {
    case route(HTTPRoute)
    case mount(any HTTPTransport)
  }

  private func exchange<Response: HTTPStatusBearing>(
    _ request: OutboundRequest,
    _ forward: (any HTTPTransport) async throws -> Response,
    _ convert: (OutboundResponse) -> Response
  ) async throws -> Response {
    do {
      let response: Response
      switch answerer(of: request) {
      case .route(let route): response = convert(try await route.answer(request))
      case .mount(let transport): response = try await forward(transport)
      case nil: throw refuse(request)
      }
      note(HTTPExchange(request: request, result: .status(response.status)))
      return response
    } catch {
      note(HTTPExchange(request: request, result: .error("\(error)")))
      throw error
    }
  }

  private func answerer(of request: OutboundRequest) -> Answerer? {
    state.withLock { state in
      if let route = state.routes.last(where: { $0.fits(request) }) { return .route(route) }
      let mount = state.mounts.last { mount in
        guard request.url.hasPrefix(mount.base) else { return false }
        let next = request.url.dropFirst(mount.base.count).first
        return next == nil || next == "/" || next == "?"
      }
      return mount.map { .mount($0.transport) }
    }
  }

  private func refuse(_ request: OutboundRequest) -> OutboundHTTPError {
    let name = "\(request.method) \(request.url)"
    state.withLock { $0.unscripted.append(name) }
    let url = request.url.prefix { $0 != "?" }
    return OutboundHTTPError(
      .invalidRequest,
      "Nothing is scripted for \(name); add http.on(\"\(request.method)\", \"\(url)\").respond(…)"
    )
  }

  private func note(_ exchange: HTTPExchange) {
    state.withLock { $0.exchanges.append(exchange) }
  }
}

/// One request and its result.
public struct HTTPExchange: Sendable {
  /// The request as the code under test sent it.
  public var request: OutboundRequest
  /// The result that the sender received.
  public var result: Result

  /// The possible results of a request.
  public enum Result: Sendable, Hashable {
    /// A response with this status code.
    case status(Int)
    /// No response, but an error with this text.
    case error(String)
  }
}

/// The property that complete and streamed responses share.
private protocol HTTPStatusBearing {
  var status: Int { get }
}

extension OutboundResponse: HTTPStatusBearing {}
extension OutboundStreamedResponse: HTTPStatusBearing {}
