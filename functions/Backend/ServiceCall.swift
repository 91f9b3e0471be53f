import Foundation
import OutboundHTTP

/// A JSON call to a service, with its failures classified by kind.
struct ServiceCall: Sendable {
  /// The service's name in error messages.
  let service: String
  /// The setting with the service's key; nil for a service without keys.
  var keySetting: String?
  /// The setting with the service's model; nil if `notFound` does not indicate a wrong setting.
  var modelSetting: String?
  let http: any HTTPTransport
  var now: @Sendable () -> Date = { Date() }

  func send<Reply: Decodable>(_ request: OutboundRequest, as reply: Reply.Type) async throws
    -> Reply
  {
    let response: OutboundResponse
    do {
      response = try await http.send(request)
    } catch let error as OutboundHTTPError {
      if error.kind == .cancelled { throw CancellationError() }
      let isLater = error.kind != .invalidRequest
      throw ServiceError(isLater ? .unavailable : .misconfigured, "\(service): \(error.message)")
    }
    guard response.isSuccess else { throw failure(response, of: request) }
    do {
      return try JSONDecoder().decode(
        Reply.self,
        from: response.body.isEmpty ? Data("{}".utf8) : Data(response.body)
      )
    } catch {
      throw ServiceError(.unavailable, "\(service) sent an answer that cannot be read")
    }
  }

  /// Sends a request and calls `read` with each line of the response as it arrives.
  ///
  /// Throws `ServiceError`, also if the response falls silent, and any error that `read` throws.
  func stream(
    _ request: OutboundRequest,
    _ silence: SilenceLimit,
    _ read: @escaping @Sendable (String) throws -> Void
  ) async throws {
    do {
      try await silence.watch { heard in
        let response = try await http.stream(request)
        heard()
        guard response.isSuccess else {
          let body = try await response.body.collect(upTo: Self.failureBytesMax)
          throw failure(
            OutboundResponse(status: response.status, headers: response.headers, body: body),
            of: request
          )
        }
        for try await line in response.body.lines() {
          heard()
          try read(line)
        }
      }
    } catch let error as SilenceLimit.SilenceError {
      throw ServiceError(.unavailable, "\(service) said nothing for \(error.seconds) s")
    } catch let error as OutboundHTTPError {
      if error.kind == .cancelled { throw CancellationError() }
      let isLater = error.kind != .invalidRequest
      throw ServiceError(isLater ? .unavailable : .misconfigured, "\(service): \(error.message)")
    }
  }

  /// The maximum number of bytes read from the body of a failure.
  private static let failureBytesMax = 1 << 16

  /// The body of a failure, whose format depends on the server.
  ///
  /// OpenAI and Pinecone's control plane put the reason below `error`, Pinecone's data plane puts
  /// it at the top level, and some servers have a plain string as `error`.
  private struct FailureBody: Decodable {
    struct Reason: Decodable {
      var message: String?
      var type: Word?
      var code: Word?

      enum CodingKeys: CodingKey {
        case message, type, code
      }

      init(from decoder: any Decoder) throws {
        // `try?` only tests for the first format. Errors of the second are thrown.
        if let message = try? decoder.singleValueContainer().decode(String.self) {
          self.message = message
          return
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        message = try container.decodeIfPresent(String.self, forKey: .message)
        type = try container.decodeIfPresent(Word.self, forKey: .type)
        code = try container.decodeIfPresent(Word.self, forKey: .code)
      }
    }
    /// A value that is a string at some services and a number at others.
    struct Word: Decodable {
      var text: String
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // An unexpected type is not an error, because the value is only a hint.
        text = (try? container.decode(String.self)) ?? ""
      }
    }
    var error: Reason?
    var message: String?
  }

  private func failure(_ response: OutboundResponse, of request: OutboundRequest) -> ServiceError {
    // A body in an unknown format gives no reason, so only the status is used.
    let body = try? JSONDecoder().decode(FailureBody.self, from: Data(response.body))
    let isSpent = [body?.error?.code, body?.error?.type].contains {
      $0?.text == "insufficient_quota"
    }
    let kind: ServiceError.Kind =
      switch response.status {
      case 401, 403: .misconfigured
      case 402: .quotaExhausted
      case 404: .notFound
      case 408: .unavailable
      case 409: .alreadyExists
      case 429: isSpent ? .quotaExhausted : .rateLimited
      case 400...499: .refused
      // A redirect, for example to a sign-in page, is treated like a server failure.
      default: .unavailable
      }
    var reason = (body?.error?.message ?? body?.message).map { ": \($0.prefix(300))" } ?? ""
    // A server may quote the key that it received, which must not appear in a log.
    for name in ["Authorization", "Api-Key"] {
      if let key = request.headers[name]?.split(separator: " ").last, !key.isEmpty {
        reason = reason.replacing(key, with: "…")
      }
    }
    var error = ServiceError(
      kind,
      "\(service) returned \(response.status)\(reason)\(correction(of: kind))",
      retryAfter: retryAfter(response.headers)
    )
    error.shouldRetry = response.headers["x-should-retry"].flatMap { Bool($0) }
    return error
  }

  /// The correction that a person must make, as the end of a sentence.
  private func correction(of kind: ServiceError.Kind) -> String {
    switch (kind, keySetting, modelSetting) {
    case (.misconfigured, let key?, _): "; correct \(key) and deploy again"
    case (.quotaExhausted, let key?, _): "; give the account of \(key) more quota"
    case (.notFound, _, let model?):
      "; correct \(model), or the address of the service, and deploy again"
    default: ""
    }
  }

  /// The delay that a service asks for: in milliseconds, in seconds, or until a date.
  private func retryAfter(_ headers: OutboundHeaders) -> Duration? {
    let milliseconds = headers["retry-after-ms"].flatMap { Double($0) }
    let seconds =
      milliseconds.map { $0 / 1000 }
      ?? headers["retry-after"].flatMap { text in
        Double(text) ?? Self.date(text)?.timeIntervalSince(reference(headers))
      }
    // Without a valid delay from the service, the caller chooses the delay.
    guard let seconds, seconds > 0 else { return nil }
    return .milliseconds(Int((min(seconds, Self.wishMax) * 1000).rounded(.up)))
  }

  /// The current time by the service's clock, which may differ from this one.
  private func reference(_ headers: OutboundHeaders) -> Date {
    headers["date"].flatMap(Self.date) ?? now()
  }

  /// Parses an HTTP date (RFC 9110, section 5.6.7), such as `Sun, 06 Nov 1994 08:49:37 GMT`.
  private static func date(_ text: String) -> Date? {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = .gmt
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.date(from: text)
  }

  /// The longest delay, one day in seconds; a longer delay is cut to this.
  private static let wishMax = 86_400.0
}
