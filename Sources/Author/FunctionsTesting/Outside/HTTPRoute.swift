public import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The answers to requests of one method to one address.
///
/// They are given in order, and the last one is repeated:
///
/// ```swift
/// suite.http.on("POST", url).respond(status: 503).respond(json: Reply(ok: true))
/// ```
public final class HTTPRoute: Sendable {
  /// Makes the answer to a request; the sender gets any error that it throws.
  public typealias Answer = @Sendable (OutboundRequest) async throws -> OutboundResponse

  let method: String
  let url: String
  private let answers = Mutex<[Answer]>([])

  init(method: String, url: String) {
    self.method = method
    self.url = url
  }

  // MARK: Scripting

  /// Adds a computed answer, which may also write to the database while the request is in progress.
  @discardableResult
  public func respond(_ answer: @escaping Answer) -> HTTPRoute {
    answers.withLock { $0.append(answer) }
    return self
  }

  /// Adds an answer with a text for its body.
  @discardableResult
  public func respond(
    status: Int = 200,
    headers: OutboundHeaders = [:],
    body: String = ""
  ) -> HTTPRoute {
    respond { _ in OutboundResponse(status: status, headers: headers, body: Array(body.utf8)) }
  }

  /// Adds an answer with a value as JSON for its body.
  ///
  /// A value that does not encode fails the request that would get it.
  @discardableResult
  public func respond(
    status: Int = 200,
    json value: some Encodable & Sendable,
    encoder: JSONEncoder = JSONEncoder()
  ) -> HTTPRoute {
    let body = Result { Array(try encoder.encode(value)) }
    return respond { _ in
      OutboundResponse(
        status: status,
        headers: ["Content-Type": "application/json"],
        body: try body.get()
      )
    }
  }

  /// Adds a failure to answer at all.
  @discardableResult
  public func fail(
    _ kind: OutboundHTTPError.Kind = .failed,
    _ message: String = "The test broke the connection."
  ) -> HTTPRoute {
    respond { _ in throw OutboundHTTPError(kind, message) }
  }

  // MARK: Answering

  /// Whether the route has an answer and the request fits it.
  func fits(_ request: OutboundRequest) -> Bool {
    Self.fits(request, method: method, url: url) && answers.withLock { !$0.isEmpty }
  }

  func answer(_ request: OutboundRequest) async throws -> OutboundResponse {
    let answer = answers.withLock { answers in
      answers.count > 1 ? answers.removeFirst() : answers.first
    }
    guard let answer else {
      throw OutboundHTTPError(.invalidRequest, "\(method) \(url) has no answer; add respond(…)")
    }
    return try await answer(request)
  }

  static func fits(_ request: OutboundRequest, method: String, url: String) -> Bool {
    guard request.method == method else { return false }
    let address =
      url.contains("?") ? request.url[...] : request.url.prefix { $0 != "?" }
    return url.hasSuffix("*") ? address.hasPrefix(url.dropLast()) : address == url
  }
}
