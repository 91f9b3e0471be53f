#if canImport(CCurl)
  /// An HTTP client that uses libcurl.
  ///
  /// A single thread handles any number of requests.
  ///
  /// ```swift
  /// let http = OutboundClient()
  /// let response = try await http.send(OutboundRequest(url: "https://api.example.com/health"))
  /// guard response.isSuccess else { throw ServiceDown(status: response.status) }
  /// ```
  ///
  /// Create one client and share it, because it keeps connections open for reuse. Its thread ends
  /// when the client and all its streamed bodies have been released. Proxies of the environment are
  /// used, but not for loopback addresses.
  public final class OutboundClient: HTTPTransport {
    /// The limits of a client and the certificates that it trusts.
    public struct Configuration: Sendable {
      /// The maximum number of concurrent requests, each of which has a connection.
      ///
      /// Further requests wait in a queue.
      public var connectionsMax: Int
      /// The maximum length of the queue.
      ///
      /// Further requests are refused.
      public var waitingMax: Int
      /// The number of unread bytes of a streamed body at which the sender has to wait.
      public var streamBufferBytesMax: Int
      /// The path of a PEM file with certificate authorities; nil to trust those of the system.
      ///
      /// If it is set, only servers with a certificate signed by one of them are trusted.
      public var certificateAuthorities: String?

      /// Creates a configuration.
      ///
      /// The defaults suit a functions worker, which can open at most 1024 files.
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

      /// Creates a configuration with default limits and the certificates at `SSL_CERT_FILE`.
      public init(environment: [String: String]) {
        self.init(
          certificateAuthorities: environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
        )
      }
    }

    private let configuration: Configuration
    private let engine: TransferEngine

    /// Creates a client without connections.
    ///
    /// Its thread starts with the first request.
    public init(configuration: Configuration = Configuration()) {
      self.configuration = configuration
      engine = TransferEngine(configuration: configuration)
    }

    deinit { engine.stop() }

    /// Sends a request and waits for the complete response.
    ///
    /// A response with any status is a result, not an error. Throws `OutboundHTTPError` if no
    /// complete response arrives.
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

    /// Sends a request and returns as soon as the head of the response has arrived.
    ///
    /// Throws `OutboundHTTPError`. Errors can also be thrown while the body is read.
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
  }

  extension OutboundClient: TransferDriver {
    func cancel(_ transfer: Transfer) { engine.cancel(transfer) }
    func resume(_ transfer: Transfer) { engine.resume(transfer) }
  }
#endif
