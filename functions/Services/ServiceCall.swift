import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One JSON call to a service, its failures sorted.
struct ServiceCall {
  /// How the service is called in messages.
  let service: String
  let http: any HTTPTransport

  func send<Reply: Decodable>(_ request: OutboundRequest, as reply: Reply.Type) async throws
    -> Reply
  {
    let response: OutboundResponse
    do {
      response = try await http.send(request)
    } catch let error as OutboundHTTPError {
      if error.kind == .cancelled { throw CancellationError() }
      let isLater = error.kind != .invalidRequest && error.kind != .tooLarge
      throw ServiceError(isLater ? .unavailable : .misconfigured, "\(service): \(error.message)")
    }
    guard response.isSuccess else { throw failure(response) }
    do {
      return try JSONDecoder().decode(
        Reply.self,
        from: response.body.isEmpty ? Data("{}".utf8) : Data(response.body)
      )
    } catch {
      throw ServiceError(.unavailable, "\(service) sent an answer that cannot be read")
    }
  }

  /// Gateways wrap the reason differently: OpenAI and the control plane below `error`, the data
  /// plane at the top.
  private struct FailureBody: Decodable {
    struct Reason: Decodable {
      var message: String?
      var code: Code?
    }
    /// A word with one service, a number with another.
    struct Code: Decodable {
      var text: String
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // Neither is a fault: the code is only a hint.
        text = (try? container.decode(String.self)) ?? ""
      }
    }
    var error: Reason?
    var message: String?
  }

  private func failure(_ response: OutboundResponse) -> ServiceError {
    // A body in no known form gives no reason, and the status must do.
    let body = try? JSONDecoder().decode(FailureBody.self, from: Data(response.body))
    let reason = (body?.error?.message ?? body?.message).map { ": \($0.prefix(300))" } ?? ""
    let isSpent = body?.error?.code?.text == "insufficient_quota"
    let kind: ServiceError.Kind =
      switch response.status {
      case 401, 403: .misconfigured
      case 404: .notFound
      case 408, 500...599: .unavailable
      case 409: .alreadyExists
      case 429: isSpent ? .quotaExhausted : .rateLimited
      default: .refused
      }
    return ServiceError(
      kind,
      "\(service) answered \(response.status)\(reason)",
      retryAfter: retryAfter(response.headers)
    )
  }

  private func retryAfter(_ headers: OutboundHeaders) -> Duration? {
    if let text = headers["retry-after-ms"], let milliseconds = Double(text), milliseconds >= 0 {
      return .milliseconds(Int(min(milliseconds, 86_400_000)))
    }
    if let text = headers["retry-after"], let seconds = Double(text), seconds >= 0 {
      return .seconds(min(seconds, 86_400))
    }
    return nil
  }
}
