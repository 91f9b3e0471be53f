import Synchronization

/// The pieces that a model says, on their way to somebody who may listen more slowly.
///
/// Who speaks never waits. What has not been listened to is as long as the answer at most, because
/// pieces are joined when many of them wait.
final class SpokenPieces: Sendable {
  private let waiting = Mutex<[String]>([])
  private let wakes: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  /// The most pieces that wait; each has its own cost beside its bytes.
  private static let piecesMax = 64

  /// No pieces yet.
  init() {
    // One wake-up is enough: who listens takes everything that there is.
    (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Adds a piece.
  func add(_ piece: String) {
    waiting.withLock { waiting in
      if waiting.count < Self.piecesMax {
        waiting.append(piece)
      } else {
        waiting[waiting.count - 1] += piece
      }
    }
    wake.yield()
  }

  /// Says that no more will come.
  func end() { wake.finish() }

  /// Hands over all pieces in order until the end, or until the listening task is cancelled.
  ///
  /// Throws what `listen` throws. Listens once.
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
