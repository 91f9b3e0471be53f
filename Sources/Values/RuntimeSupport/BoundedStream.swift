import Synchronization

/// Elements for one reader, bounded by their bytes: a reader that is slow loses the oldest.
///
/// The stream ends when its source is finished and everything has been read, or at once when the
/// reading task is cancelled.
package struct BoundedStream<Element: Sendable>: AsyncSequence, Sendable {
  /// Where the elements come from; sending never waits.
  package final class Source: Sendable {
    private let queue: Mutex<BoundedQueue<Element>>
    private let wake: AsyncStream<Void>.Continuation

    fileprivate init(bytesMax: Int, wake: AsyncStream<Void>.Continuation) {
      queue = Mutex(BoundedQueue(bytesMax: bytesMax))
      self.wake = wake
    }

    /// Adds an element that has so many bytes.
    package func send(_ element: Element, bytes: Int) {
      queue.withLock { $0.append(element, bytes: bytes) }
      wake.yield()
    }

    /// Ends the stream after what has been sent.
    package func finish() { wake.finish() }

    /// Calls `body` once the reader has left or the source is finished.
    package func onEnd(_ body: @escaping @Sendable () -> Void) {
      wake.onTermination = { _ in body() }
    }

    fileprivate func next() -> BoundedQueue<Element>.Item? { queue.withLock { $0.popFirst() } }
  }

  private let source: Source
  private let wakes: AsyncStream<Void>
  private let gap: @Sendable (Int) -> Element?

  /// A stream of at most `bytesMax` unread bytes, and its source.
  ///
  /// `gap` makes the element that stands for a number of dropped ones, if they are to be reported.
  package static func make(
    bytesMax: Int,
    gap: @escaping @Sendable (Int) -> Element? = { _ in nil }
  ) -> (stream: Self, source: Source) {
    // One wake-up is enough: the reader takes everything that there is.
    let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let source = Source(bytesMax: bytesMax, wake: wake)
    return (Self(source: source, wakes: wakes, gap: gap), source)
  }

  package func makeAsyncIterator() -> Iterator {
    Iterator(source: source, wakes: wakes.makeAsyncIterator(), gap: gap)
  }

  /// Reads the stream; there is one iterator at a time.
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
