import DequeModule
import NIOCore
import Synchronization

/// A queue of the elements that arrive on a connection, for a task that may be slower.
package final class InboundQueue<Element: Sendable>: Sendable {
  /// The number of bytes that may be queued for a busy task before reading should pause.
  ///
  /// The number of elements is limited as well, because a message may be empty.
  private static var bytesMax: Int { 64 * 1024 }
  private static var countMax: Int { 16 }

  private struct State {
    var elements: Deque<(element: Element, bytes: Int)> = []
    var bytes = 0
    var end: Result<Void, any Error>?
    var waiting: CheckedContinuation<Element?, any Error>?
    var isPaused = false

    var isFull: Bool { bytes >= bytesMax || elements.count >= countMax }

    mutating func takeWaiting() -> CheckedContinuation<Element?, any Error>? {
      defer { waiting = nil }
      return waiting
    }
  }

  private let state = Mutex(State())
  private let resume: @Sendable () -> Void

  /// Creates a queue that calls `resume`, on any thread, when it was full and has room again.
  package init(resume: @escaping @Sendable () -> Void) {
    self.resume = resume
  }

  /// Adds an element and returns true if more should follow.
  package func yield(_ element: Element, bytes: Int) -> Bool {
    let (waiting, wantsMore) = state.withLock { state in
      guard state.end == nil else {
        return (nil as CheckedContinuation<Element?, any Error>?, true)
      }
      if let waiting = state.takeWaiting() { return (waiting, true) }
      state.elements.append((element, bytes))
      state.bytes += bytes
      state.isPaused = state.isFull
      return (nil, !state.isPaused)
    }
    waiting?.resume(returning: element)
    return wantsMore
  }

  /// Ends the queue at the end of input or when input is no longer wanted.
  ///
  /// Elements that are already queued can still be read.
  package func finish(_ end: Result<Void, any Error> = .success(())) {
    let waiting = state.withLock { state in
      if state.end == nil { state.end = end }
      return state.takeWaiting()
    }
    waiting?.resume(with: end.map { nil })
  }

  /// Returns the next element, or nil after the last one; only one task at a time may call it.
  package func next() async throws -> Element? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (outcome, resumes) = state.withLock { state -> (Result<Element?, any Error>?, Bool) in
          if let (element, bytes) = state.elements.popFirst() {
            state.bytes -= bytes
            let resumes = state.isPaused && !state.isFull
            if resumes { state.isPaused = false }
            return (.success(element), resumes)
          }
          if let end = state.end { return (end.map { nil }, false) }
          state.waiting = continuation
          return (nil, false)
        }
        if let outcome { continuation.resume(with: outcome) }
        if resumes { resume() }
      }
    } onCancel: {
      finish(.failure(CancellationError()))
    }
  }
}

extension InboundQueue {
  /// The elements as they arrive, for one reader.
  package var elements: AsyncThrowingStream<Element, any Error> {
    AsyncThrowingStream { try await self.next() }
  }
}
