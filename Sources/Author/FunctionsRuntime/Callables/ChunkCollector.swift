import Synchronization

/// A collector of the chunks that a streaming callable sends, for use in tests.
public final class ChunkCollector<Chunk: Sendable>: Sendable {
  private let chunks = Mutex<[Chunk]>([])

  /// Creates a collector without chunks.
  public init() {}

  /// The chunks sent so far, in the order of sending.
  public var all: [Chunk] { chunks.withLock { $0 } }

  /// A stream to pass to the function.
  ///
  /// Its chunks are added to the collector.
  public var stream: CallableStream<Chunk> {
    CallableStream { chunk in
      self.chunks.withLock { $0.append(chunk) }
      return true
    }
  }
}
