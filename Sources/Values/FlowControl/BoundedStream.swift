import Synchronization

/// A stream with one reader and a limit on unread bytes: a slow reader loses the oldest elements.
///
/// The stream ends once its source is finished, or the reading task is cancelled, and the reader
/// has read everything that was sent.
package struct BoundedStream<Element: Sendable>: AsyncSequence, Sendable {
  /// The sending side of the stream; sending never waits.
  package final class Source: Sendable {
    private let queue: Mutex<BoundedQueue<Element>>
    private let wake: AsyncStream<Void>.Continuation

    fileprivate init(bytesMax: Int, wake: AsyncStream<Void>.Continuation) {
      queue = Mutex(BoundedQueue(bytesMax: bytesMax))
      self.wake = wake
    }

    /// Adds an element of `bytes` bytes.
    package func send(_ element: Element, bytes: Int) {
      queue.withLock { $0.append(element, bytes: bytes) }
      wake.yield()
    }

    /// Ends the stream after the elements that have been sent.
    package func finish() { wake.finish() }

    /// Sets a closure to call once the reader has left or the source is finished.
    package func onEnd(_ body: @escaping @Sendable () -> Void) {
      wake.onTermination = { _ in body() }
    }

    fileprivate func next() -> BoundedQueue<Element>.Item? { queue.withLock { $0.popFirst() } }
  }

  private let source: Source
  private let wakes: AsyncStream<Void>
  private let gap: @Sendable (Int) -> Element?

  /// Creates a stream of at most `bytesMax` unread bytes, and its source.
  ///
  /// `gap` returns an element that reports a number of dropped elements, or nil to skip the report.
  package static func make(
    bytesMax: Int,
    gap: @escaping @Sendable (Int) -> Element? = { _ in nil }
  ) -> (stream: Self, source: Source) {
    // One pending wake-up is enough because the reader takes everything that is queued.
    let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let source = Source(bytesMax: bytesMax, wake: wake)
    return (Self(source: source, wakes: wakes, gap: gap), source)
  }

  package func makeAsyncIterator() -> Iterator {
    Iterator(source: source, wakes: wakes.makeAsyncIterator(), gap: gap)
  }

  /// An iterator over the stream; only one may be in use at a time.
  package struct Iterator: AsyncIteratorProtocol {
    fileprivate let source: Source
    fileprivate var wakes: AsyncStream<Void>.Iterator
    fileprivate let gap: @Sendable (Int) -> Element?

    package mutating func next() async -> Element? {
      while true {
        switch source.next() {
        case .element(let element): return element
        case .gap(let count):
          if let element = gap(count) { return element }
        case nil:
          guard await wakes.next() != nil else { return nil }
        }
      }
    }
  }
}
