public import FirestoreClient
import Foundation
public import OutboundHTTP

/// A client of the backend's callables that acts as the signed-in user.
public struct CallableClient: Sendable {
  private let origin: String
  private let http: any HTTPTransport
  private let tokens: any IDTokenSource

  /// Creates a client.
  ///
  /// `origin` is the URL to which `/` and the name of a function are appended, such as
  /// `https://us-central1-psst.cloudfunctions.net`, or
  /// `http://127.0.0.1:5001/demo-psst/us-central1` for the emulator.
  public init(origin: String, http: any HTTPTransport, tokens: any IDTokenSource) {
    self.origin = origin
    self.http = http
    self.tokens = tokens
  }

  /// Calls a function and returns its result.
  ///
  /// A call whose token is refused is made once more with a new one. Throws `CallFailure`, and the
  /// errors of the source of tokens.
  public func call<Reply: Decodable>(
    _ function: String,
    _ data: some Encodable & Sendable,
    as type: Reply.Type = Reply.self,
    timeout: Duration = AppServices.timeout
  ) async throws -> Reply {
    let response = try await authorized { token in
      try await http.send(try request(function, data, token: token, timeout: timeout))
    } status: {
      $0.status
    }
    return try Self.result(response.body, status: response.status)
  }

  /// Calls a streaming function, passes its chunks to `receive` and returns its result.
  ///
  /// Throws as `call` does, and rethrows the error of `receive`.
  public func stream<Chunk: Decodable, Reply: Decodable>(
    _ function: String,
    _ data: some Encodable & Sendable,
    as type: Reply.Type = Reply.self,
    timeout: Duration = .seconds(150),
    receive: (Chunk) async throws -> Void
  ) async throws -> Reply {
    let response = try await authorized { token in
      var request = try request(function, data, token: token, timeout: timeout)
      request.headers["Accept"] = "text/event-stream"
      return try await http.stream(request)
    } status: {
      $0.status
    }
    do {
      guard response.headers["content-type"]?.hasPrefix("text/event-stream") == true else {
        let body = try await response.body.collect(upTo: Self.bodyBytesMax)
        return try Self.result(body, status: response.status)
      }
      for try await line in response.body.lines() where line.hasPrefix("data:") {
        let event = Data(line.dropFirst("data:".count).utf8)
        // An event that is not a chunk ends the call; `result` reports an unknown form.
        guard let chunk = try? JSONDecoder().decode(Message<Chunk>.self, from: event) else {
          return try Self.result(Array(event), status: 200)
        }
        try await receive(chunk.message)
      }
    } catch let error as OutboundHTTPError {
      throw try Self.failure(error)
    }
    throw CallFailure(.unavailable, "the response ended early")
  }

  // MARK: Requests

  private struct Message<Chunk: Decodable>: Decodable { var message: Chunk }
  private struct Envelope<Content: Encodable>: Encodable { var data: Content }

  private func request(
    _ function: String,
    _ data: some Encodable,
    token: String,
    timeout: Duration
  ) throws -> OutboundRequest {
    OutboundRequest(
      method: "POST",
      url: "\(origin)/\(function)",
      headers: ["Content-Type": "application/json", "Authorization": "Bearer \(token)"],
      body: Array(try JSONEncoder().encode(Envelope(data: data))),
      timeout: timeout,
      responseBytesMax: Self.bodyBytesMax
    )
  }

  private func authorized<Response>(
    _ send: (String) async throws -> Response,
    status: (Response) -> Int
  ) async throws -> Response {
    do {
      let token = try await tokens.idToken(replacing: nil)
      let response = try await send(token)
      guard status(response) == 401 else { return response }
      let other = try await tokens.idToken(replacing: token)
      return other == token ? response : try await send(other)
    } catch let error as OutboundHTTPError {
      throw try Self.failure(error)
    }
  }

  // MARK: Results

  private struct Reply<Result: Decodable>: Decodable { var result: Result }

  private struct Failure: Decodable {
    struct Content: Decodable {
      var status: String?
      var message: String?
      var details: Details?
    }
    var error: Content
  }

  private struct Details: Decodable {
    var retryAfterSeconds: Double?

    private enum CodingKeys: String, CodingKey { case retryAfterSeconds }

    init(from decoder: any Decoder) throws {
      // Details can have any form; only this one means something here.
      let fields = try? decoder.container(keyedBy: CodingKeys.self)
      retryAfterSeconds = try? fields?.decodeIfPresent(Double.self, forKey: .retryAfterSeconds)
    }
  }

  private static func result<Result: Decodable>(
    _ body: [UInt8],
    status: Int
  ) throws -> Result {
    let data = Data(body)
    // What is neither a result nor a failure is reported below as an unknown form.
    if (200..<300).contains(status),
      let reply = try? JSONDecoder().decode(Reply<Result>.self, from: data)
    {
      return reply.result
    }
    // What is no failure either has an error of its own.
    guard let failure = try? JSONDecoder().decode(Failure.self, from: data) else {
      // A page of a proxy, or of a network that wants a sign-in, is not the function's answer.
      let isJSON =
        (try? JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)) != nil
      throw CallFailure(
        isJSON || status == 404 ? .internal : .unavailable,
        "the function answered \(status) in an unknown form"
      )
    }
    // A wait that no person would wait for is as good as none.
    let seconds = failure.error.details?.retryAfterSeconds.flatMap { seconds in
      (0...waitMax).contains(seconds) ? seconds : nil
    }
    throw CallFailure(
      failure.error.status.flatMap(StatusCode.init(name:)) ?? .unknown,
      failure.error.message ?? "",
      retryAfter: seconds.map { .seconds($0) }
    )
  }

  private static func failure(_ error: OutboundHTTPError) throws -> CallFailure {
    if error.kind == .cancelled { throw CancellationError() }
    return CallFailure(.unavailable, error.message)
  }

  /// The largest result, as large as the server's own limit.
  private static let bodyBytesMax = 32 << 20
  /// The longest wait that is passed on, a day in seconds.
  private static let waitMax = 86_400.0
}

/// The failure of a call of a function.
public struct CallFailure: Error, Sendable, Hashable {
  /// The status that the function returned; `unavailable` if it could not be reached.
  public var code: StatusCode
  /// The text of the function.
  public var message: String
  /// The time after which the function wants to be called again; nil if it named none.
  public var retryAfter: Duration?

  init(_ code: StatusCode, _ message: String, retryAfter: Duration? = nil) {
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
  }
}
