public import OutboundHTTP
import Synchronization

/// Every outside server, as a test scripts it.
///
/// ```swift
/// suite.http.on("POST", "https://api.example.com/mail").respond(status: 202)
/// #expect(suite.http.requests("POST", "https://api.example.com/mail").count == 1)
/// ```
///
/// A request without a script fails, and `settle` and the end of the suite report it. Addresses are
/// compared without their query unless the script has one; a `*` at the end stands for any rest.
/// The latest script comes first.
public final class TestHTTP: HTTPTransport {
  private struct State {
    var routes: [HTTPRoute] = []
    var mounts: [(base: String, transport: any HTTPTransport)] = []
    var exchanges: [HTTPExchange] = []
    var unscripted: [String] = []
  }

  /// The exchanges kept in the journal; further ones push out the oldest.
  private static let exchangesMax = 10_000

  private let state = Mutex(State())

  init() {}

  // MARK: Scripting

  /// The answers to requests of a method to an address; `respond` and `fail` add them.
  ///
  /// The same method and address return the same route again, so answers can be added later.
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

  /// Hands every request below an address to another transport, such as a stand-in for a provider.
  ///
  /// `base` is scheme and host, with the beginning of the path if only a part is meant. Routes made
  /// by `on` take precedence.
  public func mount(_ transport: any HTTPTransport, at base: String) {
    var base = base
    while base.hasSuffix("/") { base.removeLast() }
    state.withLock { $0.mounts.append((base, transport)) }
  }

  // MARK: Looking back

  /// The requests and how they were answered, oldest first, in the order of the answers.
  ///
  /// At most the last 10 000 exchanges are kept.
  public var exchanges: [HTTPExchange] { state.withLock { $0.exchanges } }

  /// The requests that fit a method and an address, as in `on`, in the order of their answers.
  public func requests(_ method: String, _ url: String) -> [OutboundRequest] {
    exchanges.map(\.request).filter { HTTPRoute.fits($0, method: method, url: url) }
  }

  /// The unscripted requests not reported before; they count as reported from now on.
  func takeUnscripted() -> [String] {
    state.withLock { state in
      defer { state.unscripted = [] }
      return state.unscripted
    }
  }

  // MARK: Sending

  /// Answers a request as scripted; throws `invalidRequest` when nothing is scripted for it.
  public func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    try await exchange(request, { try await $0.send(request) }) { $0 }
  }

  /// Answers a request as scripted; a mounted transport's answer is streamed.
  ///
  /// Throws `OutboundHTTPError` `invalidRequest` when nothing is scripted for it.
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
    state.withLock { state in
      state.exchanges.append(exchange)
      if state.exchanges.count > Self.exchangesMax * 2 {
        state.exchanges.removeFirst(Self.exchangesMax)
      }
    }
  }
}

/// One request and its result.
public struct HTTPExchange: Sendable {
  /// What was sent.
  public var request: OutboundRequest
  /// What came back.
  public var result: Result

  /// What can come back.
  public enum Result: Sendable, Hashable {
    /// A response with this status.
    case status(Int)
    /// No response; the error's text.
    case error(String)
  }
}

/// What whole and streamed responses share.
private protocol HTTPStatusBearing {
  var status: Int { get }
}

extension OutboundResponse: HTTPStatusBearing {}
extension OutboundStreamedResponse: HTTPStatusBearing {}
