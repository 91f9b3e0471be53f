import Dispatch
import Foundation
import RuntimeSupport
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Writes lines to a descriptor in their order, from a thread of its own.
///
/// Whoever adds a line never waits for the reader. Lines that nobody reads wait in memory, bounded;
/// beyond the bound the oldest are dropped, and a line in their place says how many.
final class LineWriter: Sendable {
  /// Bytes of lines that may wait: some thousand lines, which a reader wants to see after a pause.
  static let bytesMax = 1 << 20

  private struct State {
    var queue: BoundedQueue<String>
    var hasThread = false
    /// Whether the thread has work, or is about to look for some.
    var isWriting = false
    var flushes: [DispatchSemaphore] = []
  }

  private let descriptor: Int32
  private let gap: @Sendable (Int) -> String
  private let state: Mutex<State>
  private let wake = DispatchSemaphore(value: 0)

  /// A writer to a descriptor that stays open; `gap` makes the line that reports dropped ones.
  init(
    to descriptor: Int32,
    bytesMax: Int = LineWriter.bytesMax,
    gap: @escaping @Sendable (Int) -> String
  ) {
    self.descriptor = descriptor
    self.gap = gap
    state = Mutex(State(queue: BoundedQueue(bytesMax: bytesMax)))
  }

  /// Adds lines that stay together, without a line end at their end.
  func write(_ text: String) {
    let (needsThread, needsWake) = state.withLock { state in
      state.queue.append(text, bytes: text.utf8.count)
      defer {
        state.hasThread = true
        state.isWriting = true
      }
      return (!state.hasThread, !state.isWriting)
    }
    // The thread ends with the process: only its descriptor's reader can hold it up.
    if needsThread { Thread.detachNewThread { self.run() } }
    if needsWake { wake.signal() }
  }

  /// Waits until everything so far is written, but not beyond `deadline`; returns whether it is.
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

  /// Writes a text in one piece where the system allows it, and blocks while the reader does not
  /// read.
  ///
  /// One piece keeps lines of several processes apart. What nobody can read any more is dropped.
  static func writeAll(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = bytes.withUnsafeBytes { buffer in
        #if canImport(Darwin)
          Darwin.write(descriptor, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
          Musl.write(descriptor, buffer.baseAddress, buffer.count)
        #else
          Glibc.write(descriptor, buffer.baseAddress, buffer.count)
        #endif
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
