import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A server with OpenAI's protocol, with retries of failed calls.
struct OpenAIServer: Sendable {
  let baseURL: String
  let key: String?
  let call: ServiceCall
  let retries: ServiceRetries
  let circuit: ServiceCircuit

  /// Throws the error of a call while the circuit is open; see `ServiceCircuit.check()`.
  func check() throws { try circuit.check() }

  /// Throws the error of a call while the circuit is open; see `ServiceCircuit.peek()`.
  func peek() throws { try circuit.peek() }

  /// Posts JSON to a path below the base URL and reads the response.
  ///
  /// `read` converts the reply to the output. A failure that it throws counts as the server's.
  func post<Reply: Decodable, Output>(
    _ path: [String],
    _ body: some Encodable,
    timeout: Duration,
    responseBytesMax: Int = OutboundRequest.defaultResponseBytesMax,
    read: (Reply) throws -> Output
  ) async throws -> Output {
    let request = try request(path, body, timeout, responseBytesMax)
    return try await retries.run(through: circuit) {
      do {
        return try read(try await call.send(request, as: Reply.self))
      } catch var error as ServiceError {
        error.kind = Self.kind(error.kind)
        throw error
      }
    }
  }

  /// Posts JSON to a path below the base URL and reads the response line by line.
  ///
  /// `begin` creates a reader for each attempt, and `end` converts the final reader to the output.
  /// A failed response is requested again only if `hasSpoken` returns false for the reader, that
  /// is, if no output has been passed on. The thrown error includes the usage from `used`. Failures
  /// thrown while reading count as the server's.
  ///
  /// A response may take any time as long as data arrives; the caller's deadline ends it. `read`
  /// must not block, so that the call takes no longer than the server does and then frees its slot.
  func stream<Reader: Sendable, Output>(
    _ path: [String],
    _ body: some Encodable,
    silence: SilenceLimit,
    begin: () -> Reader,
    read: @escaping @Sendable (String, inout Reader) throws -> Void,
    hasSpoken: (Reader) -> Bool,
    used: (Reader) -> TokenUsage,
    end: (Reader) throws -> Output
  ) async throws -> Output {
    let request = try request(path, body, nil, OutboundRequest.defaultResponseBytesMax)
    return try await retries.run(through: circuit) {
      let reader = Mutex(begin())
      do {
        try await call.stream(request, silence) { line in
          try reader.withLock { try read(line, &$0) }
        }
        return try end(reader.withLock(\.self))
      } catch var error as ServiceError {
        let reader = reader.withLock(\.self)
        error.kind = Self.kind(error.kind)
        if hasSpoken(reader) { error.shouldRetry = false }
        error.usage += used(reader)
        throw error
      }
    }
  }

  private func request(
    _ path: [String],
    _ body: some Encodable,
    _ timeout: Duration?,
    _ responseBytesMax: Int
  ) throws -> OutboundRequest {
    var headers: OutboundHeaders = ["Content-Type": "application/json"]
    if let key { headers["Authorization"] = "Bearer \(key)" }
    return OutboundRequest(
      method: "POST",
      url: OutboundURL.make(base: baseURL, path: path),
      headers: headers,
      body: Array(try JSONEncoder.stable().encode(body)),
      timeout: timeout,
      responseBytesMax: responseBytesMax
    )
  }

  /// Returns the kind of failure that a kind of response means for this server.
  ///
  /// The server responded, so if something is not found, it is the model or the path. A conflict is
  /// temporary.
  private static func kind(_ kind: ServiceError.Kind) -> ServiceError.Kind {
    switch kind {
    case .notFound: .misconfigured
    case .alreadyExists: .unavailable
    default: kind
    }
  }
}
