public import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The scripted responses to requests with one method and one URL.
///
/// Each request gets the next response, and the last response is repeated:
///
/// ```swift
/// suite.http.on("POST", url).respond(status: 503).respond(json: Reply(ok: true))
/// ```
public final class HTTPRoute: Sendable {
  /// A closure that returns the response to a request.
  ///
  /// Its errors are thrown to the sender.
  public typealias Answer = @Sendable (OutboundRequest) async throws -> OutboundResponse

  let method: String
  let url: String
  private let answers = Mutex<[Answer]>([])

  init(method: String, url: String) {
    self.method = method
    self.url = url
  }

  // MARK: Scripting

  /// Adds a computed response.
  ///
  /// The closure may also write to the database while the request waits.
  @discardableResult
  public func respond(_ answer: @escaping Answer) -> HTTPRoute {
    answers.withLock { $0.append(answer) }
    return self
  }

  /// Adds a response whose body is text.
  @discardableResult
  public func respond(
    status: Int = 200,
    headers: OutboundHeaders = [:],
    body: String = ""
  ) -> HTTPRoute {
    respond { _ in OutboundResponse(status: status, headers: headers, body: Array(body.utf8)) }
  }

  /// Adds a response whose body is a value as JSON.
  ///
  /// If the value does not encode, the request that would receive it fails.
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

  /// Adds a failure: the request gets an error instead of a response.
  @discardableResult
  public func fail(
    _ kind: OutboundHTTPError.Kind = .failed,
    _ message: String = "The test broke the connection."
  ) -> HTTPRoute {
    respond { _ in throw OutboundHTTPError(kind, message) }
  }

  //MARK: Responding

  /// Returns true if the route has a response and matches the request.
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
