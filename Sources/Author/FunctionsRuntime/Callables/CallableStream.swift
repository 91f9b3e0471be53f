/// The stream to which a streaming callable sends its chunks.
public struct CallableStream<Chunk: Sendable>: Sendable {
  private let receive: @Sendable (Chunk) async throws -> Bool

  /// A stream whose chunks go to a closure, which returns whether somebody reads them.
  public init(_ receive: @escaping @Sendable (Chunk) async throws -> Bool) {
    self.receive = receive
  }

  /// Sends a chunk; returns false and sends nothing when the client does not stream.
  ///
  /// Waits while the client is slow. Throws `CancellationError` once the client has gone or the
  /// call is over, and the encoder's error for a chunk that is not JSON. Numbers are written bare,
  /// whatever their size: only the result has the wrapped form.
  @discardableResult
  public func send(_ chunk: Chunk) async throws -> Bool {
    try await receive(chunk)
  }
}
