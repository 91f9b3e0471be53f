import DequeModule
import NIOCore
import Synchronization

/// The buffer for a response body between the worker's connection and its single reader.
///
/// It holds about `bufferedBytesMax` bytes. Beyond that, the connection stops reading until the
/// buffer is half empty, so a slow client slows down only the connection of its own worker.
final class ResponseStream: Sendable {
  private struct State {
    var pieces = Deque<ByteBuffer>()
    var bytes = 0
    var isPaused = false
    var ending: Result<Void, any Error>?
    var reader: CheckedContinuation<ByteBuffer?, any Error>?
  }

  private let bufferedBytesMax: Int
  private let resumeReading: @Sendable () -> Void
  private let state = Mutex(State())

  /// Creates an empty body.
  ///
  /// `resumeReading` is called when a paused connection may read again.
  init(bufferedBytesMax: Int, resumeReading: @escaping @Sendable () -> Void) {
    self.bufferedBytesMax = bufferedBytesMax
    self.resumeReading = resumeReading
  }

  /// Appends a piece; returns false if the connection should stop reading.
  func push(_ piece: ByteBuffer) -> Bool {
    let (reader, goOn) = state.withLock {
      state -> (CheckedContinuation<ByteBuffer?, any Error>?, Bool) in
      guard state.ending == nil else { return (nil, true) }
      if let reader = state.reader {
        state.reader = nil
        return (reader, true)
      }
      state.pieces.append(piece)
      state.bytes += piece.readableBytes
      if state.bytes > bufferedBytesMax { state.isPaused = true }
      return (nil, !state.isPaused)
    }
    reader?.resume(returning: piece)
    return goOn
  }

  /// Ends the body, with or without an error; later calls have no effect.
  func finish(_ ending: Result<Void, any Error>) {
    let reader = state.withLock { state -> CheckedContinuation<ByteBuffer?, any Error>? in
      guard state.ending == nil else { return nil }
      state.ending = ending
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(with: ending.map { nil })
  }

  /// Returns the next piece, or nil at the end of the body.
  ///
  /// Cancellation ends the body with a `CancellationError`.
  func next() async throws -> ByteBuffer? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (outcome, resumes) = state.withLock {
          state -> (Result<ByteBuffer?, any Error>?, Bool) in
          if let piece = state.pieces.popFirst() {
            state.bytes -= piece.readableBytes
            let resumes = state.isPaused && state.bytes <= bufferedBytesMax / 2
            if resumes { state.isPaused = false }
            return (.success(piece), resumes)
          }
          if let ending = state.ending { return (ending.map { nil }, false) }
          state.reader = continuation
          return (nil, false)
        }
        if let outcome { continuation.resume(with: outcome) }
        if resumes { resumeReading() }
      }
    } onCancel: {
      finish(.failure(CancellationError()))
    }
  }
}
