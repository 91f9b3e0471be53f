import HTTPSupport
public import HTTPTypes
package import Invocation
import NIOCore

/// One request to an HTTP function.
public struct HTTPFunctionRequest: Sendable {
  /// The method, such as `.get`; every HTTP method is possible.
  public var method: HTTPRequest.Method
  /// The path below the function's own, as sent: it begins with `/`, and escapes are kept.
  public var path: String
  /// The part after the question mark, as sent; nil without one.
  public var query: String?
  /// The host, and the port if it is named, that the client called: its `Host` header; nil without one.
  public var host: String?
  /// The other header fields, as sent.
  public var headers: HTTPFields
  /// The body, as it arrives.
  public var body: HTTPRequestBody
  /// The id that follows the request through several services; nil when it has none.
  public var traceID: String?
  /// The id that follows this invocation through the logs of server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A request as a test makes one; `target` is a path with or without a query.
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

  /// The first value of this name in the query, decoded; nil when there is none.
  public func query(_ name: String) -> String? {
    QueryParameters(query ?? "")[name]
  }

  /// The trace of W3C's `traceparent`, else of Google's older header.
  private static func traceID(in headers: HTTPFields) -> String? {
    if let parent = headers[InvocationRequest.traceHeader] {
      let parts = parent.split(separator: "-")
      if parts.count >= 4, parts[1].utf8.count == 32 { return String(parts[1]) }
    }
    let cloud = headers[fieldName("x-cloud-trace-context")]?.prefix { $0 != "/" && $0 != ";" }
    return cloud.flatMap { $0.isEmpty ? nil : String($0) }
  }
}

/// The body of a request to an HTTP function: pieces of bytes as they arrive.
///
/// Read it once, by one task. The client is held up while nobody reads; whatever is unread when the
/// function has answered is skipped. Reading throws when the client leaves or sends too much.
public struct HTTPRequestBody: AsyncSequence, Sendable {
  /// Bytes in the order in which they were sent; never empty.
  public typealias Element = [UInt8]

  private let body: InvocationRequest.Body

  /// A body that has already arrived; empty by default.
  public init(_ bytes: [UInt8] = []) {
    body = .whole(ByteBuffer(bytes: bytes))
  }

  package init(_ body: InvocationRequest.Body) {
    self.body = body
  }

  /// The whole body; throws `HTTPFunctionError` with status 413 when it is longer.
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

  /// Starts reading.
  public func makeAsyncIterator() -> AsyncIterator {
    switch body {
    case .whole(let buffer): AsyncIterator(whole: buffer, pieces: nil)
    case .stream(let pieces): AsyncIterator(whole: nil, pieces: pieces.makeAsyncIterator())
    }
  }

  /// Reads the pieces.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var whole: ByteBuffer?
    fileprivate var pieces: AsyncThrowingStream<ByteBuffer, any Error>.Iterator?

    /// The next piece, or nil at the end.
    ///
    /// Throws when the client leaves or sends more than the limit.
    public mutating func next() async throws -> [UInt8]? {
      if let whole {
        self.whole = nil
        return whole.readableBytes > 0 ? Array(whole.readableBytesView) : nil
      }
      while let piece = try await pieces?.next() {
        if piece.readableBytes > 0 { return Array(piece.readableBytesView) }
      }
      // A stream ends when its reader is cancelled, and a part must not be taken for the whole.
      try Task.checkCancellation()
      return nil
    }
  }
}
