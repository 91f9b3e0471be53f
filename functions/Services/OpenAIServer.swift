import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A server that speaks OpenAI's protocol, retried as its failures allow.
struct OpenAIServer: Sendable {
  let baseURL: String
  let key: String?
  let call: ServiceCall
  let retries: ServiceRetries
  let circuit: ServiceCircuit

  /// Throws as a call would while the circuit is open, see `ServiceCircuit.check()`.
  func check() throws { try circuit.check() }

  /// Throws as a call would while the circuit is open, see `ServiceCircuit.peek()`.
  func peek() throws { try circuit.peek() }

  /// Posts JSON to a path below the base and reads the answer.
  ///
  /// `read` turns the reply into the output; a failure that it throws counts as the server's.
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

  /// Posts JSON to a path below the base and reads the answer line by line.
  ///
  /// `begin` makes what reads an answer; what it holds at the answer's end is the output of `end`.
  /// An answer that fails is requested again only as long as `hasSpoken` says that nobody has heard
  /// of it, and its error has what it `used`. Failures that the reading throws count as the server's.
  ///
  /// An answer may take any time while it goes on: its caller's own deadline ends it. `read` waits for
  /// nobody, so that the call takes as long as the server and its slot is free for others then.
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
    // Equal requests have equal bytes, so that a server can recognise a prompt's beginning.
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var headers: OutboundHeaders = ["Content-Type": "application/json"]
    if let key { headers["Authorization"] = "Bearer \(key)" }
    return OutboundRequest(
      method: "POST",
      url: OutboundURL.make(base: baseURL, path: path),
      headers: headers,
      body: Array(try encoder.encode(body)),
      timeout: timeout,
      responseBytesMax: responseBytesMax
    )
  }

  /// The kind of failure that a status means for this server.
  ///
  /// The server is there, so an unknown thing is the model or the path; and a conflict is
  /// temporary.
  private static func kind(_ kind: ServiceError.Kind) -> ServiceError.Kind {
    switch kind {
    case .notFound: .misconfigured
    case .alreadyExists: .unavailable
    default: kind
    }
  }
}
