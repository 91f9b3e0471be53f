import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An HTTP client that uses `URLSession`, for apps on phones.
///
/// Servers use `OutboundClient` instead. This client treats some members of a request differently:
///
/// - `connectTimeout` has no effect, because `URLSession` does not tell when a connection is
///   established. The time to connect is part of `timeout`. Without a `timeout`, the system gives
///   up on a server that does not answer after a minute or more.
/// - `usesFreshConnection` sends the request in a session of its own, whose connections are closed
///   afterwards. On Linux this is so for every request that must not be sent twice, such as a POST,
///   because `URLSession` would send it again there if a reused connection breaks.
/// - `headers`: fields with the same name are sent as one, joined with commas. The headers of a
///   response are joined in the same way. A body without a `Content-Type` is sent as
///   `application/octet-stream`, because `URLSession` would call it a form.
/// - `body`: a GET request with a body throws `invalidRequest`.
/// - `responseBytesMax` counts decompressed bytes, because `URLSession` asks for compressed
///   responses.
/// - `redirectsMax`: on Linux, a redirect that asks for the body again fails the request.
///
/// On Apple's systems the sender of a streamed body has to wait while many bytes are unread, apart
/// from bytes that are on their way. On Linux it never waits. If more than `streamBufferBytesMax`
/// bytes are unread, the request fails with `tooLarge`.
///
/// The client stores no cookies, responses or credentials. It uses the system's proxy; on Linux,
/// the environment's, also for loopback addresses.
///
/// Create one client and share it, because it keeps connections open for reuse. They are closed
/// when the client has been released and its requests have ended.
public final class URLSessionTransport: HTTPTransport {
  private let session: URLSession
  private let events: URLSessionEvents
  private let streamBufferBytesMax: Int

  /// Creates a client without connections.
  ///
  /// A streamed response with more than `streamBufferBytesMax` unread bytes fails with `tooLarge`.
  public init(streamBufferBytesMax: Int = OutboundRequest.defaultResponseBytesMax) {
    self.streamBufferBytesMax = streamBufferBytesMax
    events = URLSessionEvents()
    session = Self.makeSession(events)
  }

  // The requests in progress end first, because a body may outlive its client.
  deinit { session.finishTasksAndInvalidate() }

  /// Sends a request and waits for the complete response.
  ///
  /// A response with any status is a result, not an error. Throws `OutboundHTTPError` if no
  /// complete response arrives.
  public func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let exchange = try exchange(request, reading: .whole)
    return try await withTaskCancellationHandler {
      exchange.start()
      return try await exchange.transfer.whole()
    } onCancel: {
      exchange.cancel(exchange.transfer)
    }
  }

  /// Sends a request and returns as soon as the head of the response has arrived.
  ///
  /// Throws `OutboundHTTPError`. Errors can also be thrown while the body is read.
  public func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    let exchange = try exchange(
      request,
      reading: .pushed(
        holdBytes: Self.canSuspend ? Self.holdBytes : .max,
        bufferBytesMax: streamBufferBytesMax
      )
    )
    let lease = TransferLease(exchange.transfer, of: exchange)
    let head = try await withTaskCancellationHandler {
      exchange.start()
      return try await exchange.transfer.head()
    } onCancel: {
      exchange.cancel(exchange.transfer)
    }
    return OutboundStreamedResponse(
      status: head.status,
      headers: head.headers,
      body: OutboundBody(lease)
    )
  }

  private func exchange(
    _ request: OutboundRequest,
    reading: ResponseState.Reading
  ) throws(OutboundHTTPError) -> URLSessionExchange {
    try request.validate()
    let urlRequest = try request.urlRequest(idleTimeout: Self.idleTimeoutSeconds)
    let transfer = Transfer(request, reading: reading)
    let isAlone = request.usesFreshConnection || Self.mayRepeat(request)
    let events = isAlone ? URLSessionEvents() : events
    let session = isAlone ? Self.makeSession(events) : session
    let task = session.dataTask(with: urlRequest)
    return URLSessionExchange(transfer, task, in: session, events: events, isAlone: isAlone)
  }

  /// Returns true if a session would repeat a request that must not be repeated.
  ///
  /// If a reused connection ends without a byte, FoundationNetworking repeats every request on
  /// another connection, and Apple's systems only the idempotent ones.
  private static func mayRepeat(_ request: OutboundRequest) -> Bool {
    #if canImport(FoundationNetworking)
      !request.isIdempotent
    #else
      false
    #endif
  }

  private static func makeSession(_ events: URLSessionEvents) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    configuration.httpCookieStorage = nil
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpShouldSetCookies = false
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpMaximumConnectionsPerHost = connectionsPerHostMax
    configuration.timeoutIntervalForRequest = idleTimeoutSeconds
    configuration.timeoutIntervalForResource = idleTimeoutSeconds
    // One operation at a time, in the order in which the session adds them.
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    return URLSession(configuration: configuration, delegate: events, delegateQueue: queue)
  }

  /// The maximum number of connections to one host.
  ///
  /// The default of a phone is 4, and listeners over HTTP/1.1 would occupy all of them.
  private static let connectionsPerHostMax = 128
  /// The number of unread bytes of a streamed body from which on the sender should wait.
  private static let holdBytes = 256 << 10
  /// The time limits of the session, longer than those of the requests, which the client enforces.
  ///
  /// A request without a `timeout`, such as a listener's, ends after a week.
  private static let idleTimeoutSeconds: Double = 7 * 24 * 60 * 60

  /// True where a suspended task can be resumed.
  ///
  /// FoundationNetworking would send the request again.
  #if canImport(FoundationNetworking)
    private static let canSuspend = false
  #else
    private static let canSuspend = true
  #endif
}

extension OutboundRequest {
  /// Returns the request in the form of `URLSession`; throws `invalidRequest` if it has none.
  fileprivate func urlRequest(idleTimeout: Double) throws(OutboundHTTPError) -> URLRequest {
    guard let address = URL(string: url, encodingInvalidCharacters: false),
      let host = address.host(), !host.isEmpty
    else {
      throw OutboundHTTPError(
        .invalidRequest,
        "the address of a request must have a host and be percent-encoded"
      )
    }
    guard method != "GET" || body.isEmpty else {
      throw OutboundHTTPError(.invalidRequest, "\(host): a GET request cannot have a body")
    }
    var request = URLRequest(url: address)
    request.timeoutInterval = idleTimeout
    request.httpMethod = method
    request.httpShouldHandleCookies = false
    for (name, value) in headers { request.addValue(value, forHTTPHeaderField: name) }
    if !body.isEmpty {
      request.httpBody = Data(body)
      if headers["Content-Type"] == nil {
        request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
      }
    }
    return request
  }
}
