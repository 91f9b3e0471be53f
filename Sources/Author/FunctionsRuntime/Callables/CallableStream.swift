/// The stream to which a streaming callable sends its chunks.
public struct CallableStream<Chunk: Sendable>: Sendable {
  private let receive: @Sendable (Chunk) async throws -> Bool

  /// Creates a stream that passes its chunks to a closure.
  ///
  /// The closure returns true if the chunk has a reader.
  public init(_ receive: @escaping @Sendable (Chunk) async throws -> Bool) {
    self.receive = receive
  }

  /// Sends a chunk to the client.
  ///
  /// Returns false and sends nothing if the client does not stream. Waits while the client is slow.
  /// Throws `CancellationError` after the client has disconnected or the call has ended, and the
  /// encoder's error for a chunk that cannot be represented as JSON. Large integers are written as
  /// plain digits in chunks; only the result wraps them.
  @discardableResult
  public func send(_ chunk: Chunk) async throws -> Bool {
    try await receive(chunk)
  }
}
