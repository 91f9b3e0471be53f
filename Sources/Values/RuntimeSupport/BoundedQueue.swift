import DequeModule

/// A queue with a bound on its bytes, whose oldest elements make room for new ones.
///
/// An element that does not fit drops the oldest until the queue is half empty, so that a slow
/// reader finds a few long gaps and not one after each element. The newest element always stays,
/// even when it alone is beyond the bound.
package struct BoundedQueue<Element> {
  /// The next thing that a reader gets.
  package enum Item {
    case element(Element)
    /// So many elements were dropped here.
    case gap(Int)
  }

  /// An element's share of the bound beside its own bytes: the queue's entry and an allocation.
  package static var entryBytes: Int { 64 }

  private let bytesMax: Int
  private var entries = Deque<(element: Element, bytes: Int)>()
  private var dropped = 0
  /// The bytes that count against the bound.
  package private(set) var bytes = 0

  /// An empty queue for at most `bytesMax` bytes.
  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// Whether there is neither an element nor a gap to report.
  package var isEmpty: Bool { entries.isEmpty && dropped == 0 }

  /// Adds an element that has so many bytes.
  package mutating func append(_ element: Element, bytes count: Int) {
    entries.append((element, count + Self.entryBytes))
    bytes += count + Self.entryBytes
    guard bytes > bytesMax else { return }
    while bytes > bytesMax / 2, entries.count > 1 {
      bytes -= entries.removeFirst().bytes
      dropped += 1
    }
  }

  /// Takes the oldest element, or the gap before it.
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
