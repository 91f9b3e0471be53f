import Synchronization

/// Keeps the chunks that a streaming callable sends, for a test to look at.
public final class ChunkCollector<Chunk: Sendable>: Sendable {
  private let chunks = Mutex<[Chunk]>([])

  /// A collector without chunks.
  public init() {}

  /// The chunks sent so far, in order.
  public var all: [Chunk] { chunks.withLock { $0 } }

  /// The stream to call the function with.
  public var stream: CallableStream<Chunk> {
    CallableStream { chunk in
      self.chunks.withLock { $0.append(chunk) }
      return true
    }
  }
}
