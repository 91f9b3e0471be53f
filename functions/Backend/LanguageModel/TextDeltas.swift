import Synchronization

/// A buffer of text pieces between a model and a listener that may be slower.
///
/// The writer never waits. The buffer is never larger than the answer, and when many pieces are
/// waiting, new ones are joined to the last.
final class TextDeltas: Sendable {
  private let waiting = Mutex<[String]>([])
  private let total = Mutex(0)
  private let wakes: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  /// The maximum number of waiting pieces, because each has a fixed cost besides its bytes.
  private static let piecesMax = 64

  /// Creates an empty buffer.
  init() {
    // One pending wake-up is enough, because the listener takes all waiting pieces.
    (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The total size of all pieces so far, in bytes.
  var bytes: Int { total.withLock { $0 } }

  /// Adds a piece, or joins it to the last one if many are waiting.
  func add(_ piece: String) {
    total.withLock { $0 += piece.utf8.count }
    waiting.withLock { waiting in
      if waiting.count < Self.piecesMax {
        waiting.append(piece)
      } else {
        waiting[waiting.count - 1] += piece
      }
    }
    wake.yield()
  }

  /// Ends the sequence of pieces.
  func end() { wake.finish() }

  /// Passes all pieces to `listen`, in order, until the end or cancellation.
  ///
  /// Throws any error that `listen` throws. It can be called only once.
  func handOver(to listen: (String) async throws -> Void) async throws {
    for await _ in wakes {
      let pieces = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for piece in pieces { try await listen(piece) }
    }
  }
}
