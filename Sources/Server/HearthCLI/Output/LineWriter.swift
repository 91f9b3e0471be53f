import Dispatch
import FlowControl
import Foundation
import LibC
import Synchronization

/// A writer that sends lines to a file descriptor in order, from its own thread.
///
/// Adding a line never blocks. Unread lines wait in bounded memory. Beyond the bound, the oldest
/// are dropped and replaced by a line that reports how many.
final class LineWriter: Sendable {
  /// The maximum size of waiting lines, enough for a few thousand lines.
  static let bytesMax = 1 << 20

  private struct State {
    var queue: BoundedQueue<String>
    var hasThread = false
    /// True if the thread has work, or is about to look for work.
    var isWriting = false
    var flushes: [DispatchSemaphore] = []
  }

  private let descriptor: Int32
  private let gap: @Sendable (Int) -> String
  private let state: Mutex<State>
  // The writing thread waits for it, which no task shares.
  private let wake = DispatchSemaphore(value: 0)

  /// Creates a writer to a descriptor that stays open.
  ///
  /// `gap` creates the line that reports dropped lines.
  init(
    to descriptor: Int32,
    bytesMax: Int = LineWriter.bytesMax,
    gap: @escaping @Sendable (Int) -> String
  ) {
    self.descriptor = descriptor
    self.gap = gap
    state = Mutex(State(queue: BoundedQueue(bytesMax: bytesMax)))
  }

  /// Adds text as one block of lines; `text` has no line ending at its end.
  func write(_ text: String) {
    let (needsThread, needsWake) = state.withLock { state in
      state.queue.append(text, bytes: text.utf8.count)
      defer {
        state.hasThread = true
        state.isWriting = true
      }
      return (!state.hasThread, !state.isWriting)
    }
    // The thread ends with the process; only a reader that does not read can block it.
    if needsThread { Thread.detachNewThread { self.run() } }
    if needsWake { wake.signal() }
  }

  /// Waits until all text so far is written, until `deadline`; returns false if it is not.
  @discardableResult
  func flush(until deadline: DispatchTime) -> Bool {
    let done = DispatchSemaphore(value: 0)
    let isIdle = state.withLock { state in
      if state.isWriting { state.flushes.append(done) }
      return !state.isWriting
    }
    return isIdle || done.wait(timeout: deadline) == .success
  }

  private func run() {
    while true {
      wake.wait()
      while let text = next() { Self.writeAll(text + "\n", to: descriptor) }
    }
  }

  private func next() -> String? {
    let (item, flushes) = state.withLock { state in
      let item = state.queue.popFirst()
      var flushes: [DispatchSemaphore] = []
      if item == nil {
        state.isWriting = false
        swap(&flushes, &state.flushes)
      }
      return (item, flushes)
    }
    for flush in flushes { flush.signal() }
    return switch item {
    case .element(let text): text
    case .gap(let count): gap(count)
    case nil: nil
    }
  }

  /// Writes text in one system call if possible; blocks while the reader does not read.
  ///
  /// A single call keeps the lines of several processes apart. If the reader has closed its end,
  /// the text is dropped.
  static func writeAll(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = bytes.withUnsafeBytes { buffer in
        LibC.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if written > 0 {
        bytes = bytes.dropFirst(written)
      } else if errno == EAGAIN {
        // Another process has made the shared descriptor non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&waiting, 1, -1)
      } else if errno != EINTR {
        return
      }
    }
  }
}
