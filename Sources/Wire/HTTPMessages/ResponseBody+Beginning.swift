package import NIOCore
import Synchronization

extension Response.Body {
  /// Returns the first bytes of the body, at most `bytesMax`.
  ///
  /// The rest of a longer body is read and discarded, so that the function can finish. After
  /// `restTime` reading stops, which ends the invocation. An error that interrupts the first
  /// `bytesMax` bytes is thrown; a later error is ignored, because the reply's status is already
  /// known.
  package func beginning(
    upTo bytesMax: Int,
    restFor restTime: Duration,
    _ clock: any Clock<Duration>
  ) async throws -> ByteBuffer {
    if case .whole(let buffer) = self {
      return buffer.getSlice(at: buffer.readerIndex, length: min(bytesMax, buffer.readableBytes))
        ?? buffer
    }
    let (overflows, overflow) = AsyncStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    let beginning = Beginning(bytesMax: bytesMax) { overflow.finish() }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await forEach { beginning.append($0) } }
        group.addTask {
          for await _ in overflows {}
          try await clock.sleep(for: restTime)
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch  where beginning.isOver {
      return beginning.bytes
    }
    return beginning.bytes
  }

  private func forEach(_ take: @escaping @Sendable (ByteBuffer) -> Void) async throws {
    switch self {
    case .whole(let buffer): take(buffer)
    case .stream(let pieces): for try await piece in pieces { take(piece) }
    case .produced(let produce): try await produce { take($0) }
    }
  }

  private final class Beginning: Sendable {
    private struct State {
      var bytes = ByteBuffer()
      var isOver = false
    }

    private let bytesMax: Int
    private let onOverflow: @Sendable () -> Void
    private let state = Mutex(State())

    init(bytesMax: Int, onOverflow: @escaping @Sendable () -> Void) {
      self.bytesMax = bytesMax
      self.onOverflow = onOverflow
    }

    var bytes: ByteBuffer { state.withLock { $0.bytes } }

    /// True if the body is longer than the kept bytes.
    var isOver: Bool { state.withLock { $0.isOver } }

    func append(_ piece: ByteBuffer) {
      let overflows = state.withLock { state in
        guard !state.isOver else { return false }
        var piece = piece
        let kept = min(piece.readableBytes, bytesMax - state.bytes.readableBytes)
        if let slice = piece.readSlice(length: kept) { state.bytes.writeImmutableBuffer(slice) }
        state.isOver = piece.readableBytes > 0
        return state.isOver
      }
      if overflows { onOverflow() }
    }
  }
}
