import DequeModule

/// A queue with a limit on its bytes that drops its oldest elements to make room for new ones.
///
/// An element that does not fit drops the oldest elements until the queue is at most half full. A
/// slow reader therefore finds a few long gaps rather than one after each element. The newest
/// element is always kept, even if it alone exceeds the limit.
package struct BoundedQueue<Element> {
  /// The next item for a reader: an element or a gap.
  package enum Item {
    case element(Element)
    /// The number of elements dropped at this point.
    case gap(Int)
  }

  /// The overhead counted for each element: the queue's entry and an allocation.
  package static var entryBytes: Int { 64 }

  private let bytesMax: Int
  private var entries = Deque<(element: Element, bytes: Int)>()
  private var dropped = 0
  /// The number of bytes that count toward the limit.
  package private(set) var bytes = 0

  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// True if there is neither an element nor a gap to report.
  package var isEmpty: Bool { entries.isEmpty && dropped == 0 }

  /// Adds an element of `count` bytes.
  package mutating func append(_ element: Element, bytes count: Int) {
    entries.append((element, count + Self.entryBytes))
    bytes += count + Self.entryBytes
    guard bytes > bytesMax else { return }
    while bytes > bytesMax / 2, entries.count > 1 {
      bytes -= entries.removeFirst().bytes
      dropped += 1
    }
  }

  /// Removes and returns the oldest element, or the gap before it.
  package mutating func popFirst() -> Item? {
    if dropped > 0 {
      defer { dropped = 0 }
      return .gap(dropped)
    }
    guard let first = entries.popFirst() else { return nil }
    bytes -= first.bytes
    return .element(first.element)
  }
}

extension BoundedQueue.Item: Sendable where Element: Sendable {}
extension BoundedQueue.Item: Equatable where Element: Equatable {}
extension BoundedQueue: Sendable where Element: Sendable {}
