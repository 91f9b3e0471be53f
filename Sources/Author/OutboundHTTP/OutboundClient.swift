/// Sends requests over the network with libcurl; one thread serves any number of them.
///
/// ```swift
/// let http = OutboundClient()
/// let response = try await http.send(OutboundRequest(url: "https://api.example.com/health"))
/// guard response.isSuccess else { throw ServiceDown(status: response.status) }
/// ```
///
/// Make one client and share it: connections are kept and used again. The thread ends when the last
/// copy of the client and of its streamed bodies is released. Proxies named in the environment are
/// respected, but never for loopback addresses.
public final class OutboundClient: HTTPTransport {
  /// The bounds of a client.
  public struct Configuration: Sendable {
    /// Exchanges at a time, and so connections; further ones wait in line.
    public var connectionsMax: Int
    /// The longest line; further requests are refused.
    public var waitingMax: Int
    /// Bytes of a streamed body that wait for their reader before the sender is held up.
    public var streamBufferBytesMax: Int
    /// A file of certificates in PEM; only servers with a certificate signed by one are trusted.
    ///
    /// Nil trusts what the system trusts.
    public var certificateAuthorities: String?

    /// Bounds; the defaults fit a functions worker, whose files are limited to 1024.
    public init(
      connectionsMax: Int = 128,
      waitingMax: Int = 8192,
      streamBufferBytesMax: Int = 256 << 10,
      certificateAuthorities: String? = nil
    ) {
      self.connectionsMax = connectionsMax
      self.waitingMax = waitingMax
      self.streamBufferBytesMax = streamBufferBytesMax
      self.certificateAuthorities = certificateAuthorities
    }

    /// The default bounds, and the certificates that `SSL_CERT_FILE` of an environment names.
    public init(environment: [String: String]) {
      self.init(
        certificateAuthorities: environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
      )
    }
  }

  private let configuration: Configuration
  private let engine: TransferEngine

  /// A client without connections; its thread starts with the first request.
  public init(configuration: Configuration = Configuration()) {
    self.configuration = configuration
    engine = TransferEngine(configuration: configuration)
  }

  deinit { engine.stop() }

  /// Sends a request and waits for the whole response.
  ///
  /// Throws `OutboundHTTPError`; a response with any status is no error.
  public func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    try request.validate()
    let transfer = Transfer(request, reading: .whole)
    return try await withTaskCancellationHandler {
      try engine.submit(transfer)
      return try await transfer.whole()
    } onCancel: {
      engine.cancel(transfer)
    }
  }

  /// Sends a request and returns when the response's head is there.
  ///
  /// Throws `OutboundHTTPError`, also while the body is read.
  public func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    try request.validate()
    let transfer = Transfer(
      request,
      reading: .streamed(bufferBytesMax: configuration.streamBufferBytesMax)
    )
    let lease = TransferLease(transfer, of: self)
    let head = try await withTaskCancellationHandler {
      try engine.submit(transfer)
      return try await transfer.head()
    } onCancel: {
      engine.cancel(transfer)
    }
    return OutboundStreamedResponse(
      status: head.status,
      headers: head.headers,
      body: OutboundBody(lease)
    )
  }

  fileprivate func cancel(_ transfer: Transfer) { engine.cancel(transfer) }
  fileprivate func resume(_ transfer: Transfer) { engine.resume(transfer) }
}

/// The right to read a streamed body; the exchange ends with it.
final class TransferLease: Sendable {
  private let transfer: Transfer
  private let client: OutboundClient

  init(_ transfer: Transfer, of client: OutboundClient) {
    self.transfer = transfer
    self.client = client
  }

  deinit { client.cancel(transfer) }

  func chunk() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      guard let (bytes, resume) = try await transfer.chunk() else { return nil }
      if resume { client.resume(transfer) }
      return bytes
    } onCancel: {
      client.cancel(transfer)
    }
  }
}
