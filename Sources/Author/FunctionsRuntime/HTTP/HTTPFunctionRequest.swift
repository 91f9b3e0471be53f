package import HTTPMessages
import HTTPSupport
public import HTTPTypes
import NIOCore

/// One request to an HTTP function.
public struct HTTPFunctionRequest: Sendable {
  /// The method, such as `.get`.
  ///
  /// Any HTTP method is possible.
  public var method: HTTPRequest.Method
  /// The path below the function's name, as sent.
  ///
  /// It begins with `/` and may contain escapes.
  public var path: String
  /// The part of the target after the question mark, as sent; nil if there is no question mark.
  public var query: String?
  /// The host and optional port that the client called, from the `Host` header; nil if unknown.
  public var host: String?
  /// The header fields other than `Host`, as sent.
  public var headers: HTTPFields
  /// The body, which can be read while it arrives.
  public var body: HTTPRequestBody
  /// The id of the trace that connects the request to other services; nil if it has none.
  public var traceID: String?
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates a request for a test.
  ///
  /// `target` is a path with an optional query.
  public init(
    _ method: HTTPRequest.Method = .get,
    _ target: String = "/",
    headers: HTTPFields = [:],
    body: HTTPRequestBody = HTTPRequestBody(),
    invocationID: String = "test",
    logger: Logger = Logger(label: "http")
  ) {
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    self.method = method
    self.path = parts.first.map(String.init) ?? "/"
    self.query = parts.count > 1 ? String(parts[1]) : nil
    self.headers = headers
    self.body = body
    self.traceID = Self.traceID(in: headers)
    self.invocationID = invocationID
    self.logger = logger
  }

  /// Returns the first decoded value of a query parameter; nil if the query does not contain it.
  public func query(_ name: String) -> String? {
    QueryParameters(query ?? "")[name]
  }

  /// Returns the trace id of the W3C header `traceparent`, or else of Google's older header.
  private static func traceID(in headers: HTTPFields) -> String? {
    if let parent = headers[.traceParent] {
      let parts = parent.split(separator: "-")
      if parts.count >= 4, parts[1].utf8.count == 32 { return String(parts[1]) }
    }
    let cloud = headers[fieldName("x-cloud-trace-context")]?.prefix { $0 != "/" && $0 != ";" }
    return cloud.flatMap { $0.isEmpty ? nil : String($0) }
  }
}

/// The body of a request to an HTTP function, as a sequence of the chunks that arrive.
///
/// Read it only once and in one task. While nothing reads, the client has to wait. Any bytes that
/// are unread when the function has responded are discarded. Reading throws if the client
/// disconnects or sends more than the limit.
public struct HTTPRequestBody: AsyncSequence, Sendable {
  /// A chunk of bytes, in the order of sending; never empty.
  public typealias Element = [UInt8]

  private let body: RequestBody

  /// Creates a body that has already arrived; empty by default.
  public init(_ bytes: [UInt8] = []) {
    body = .whole(ByteBuffer(bytes: bytes))
  }

  package init(_ body: RequestBody) {
    self.body = body
  }

  /// Returns the whole body; throws `HTTPFunctionError` with status 413 if it exceeds `bytesMax`.
  public func collect(upTo bytesMax: Int) async throws -> [UInt8] {
    var all: [UInt8] = []
    for try await bytes in self {
      guard bytes.count <= bytesMax - all.count else {
        throw HTTPFunctionError(.contentTooLarge, "The body is longer than \(bytesMax) bytes.")
      }
      all += bytes
    }
    return all
  }

  /// Starts to read the body.
  public func makeAsyncIterator() -> AsyncIterator {
    switch body {
    case .whole(let buffer): AsyncIterator(whole: buffer, pieces: nil)
    case .stream(let pieces): AsyncIterator(whole: nil, pieces: pieces.makeAsyncIterator())
    }
  }

  /// The iterator over the chunks of a body.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var whole: ByteBuffer?
    fileprivate var pieces: AsyncThrowingStream<ByteBuffer, any Error>.Iterator?

    /// Returns the next chunk, or nil at the end of the body.
    ///
    /// Throws if the client disconnects or sends more than the limit.
    public mutating func next() async throws -> [UInt8]? {
      if let whole {
        self.whole = nil
        return whole.readableBytes > 0 ? Array(whole.readableBytesView) : nil
      }
      while let piece = try await pieces?.next() {
        if piece.readableBytes > 0 { return Array(piece.readableBytesView) }
      }
      // A stream also ends when its reader is cancelled. A partial body must not be mistaken for
      // the whole.
      try Task.checkCancellation()
      return nil
    }
  }
}
