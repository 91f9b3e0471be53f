import DequeModule

/// The newest elements of a series, oldest first, with limits on their number and bytes.
///
/// The newest element is always kept, even if it alone exceeds the limit on bytes.
package struct RecentElements<Element>: RandomAccessCollection, MutableCollection {
  private let countMax: Int
  private let bytesMax: Int
  private var entries = Deque<(element: Element, bytes: Int)>()
  /// The number of bytes that count toward the limit.
  package private(set) var bytes = 0
  /// The number of elements dropped so far.
  package private(set) var dropped = 0

  package init(countMax: Int, bytesMax: Int = .max) {
    self.countMax = countMax
    self.bytesMax = bytesMax
  }

  package var startIndex: Int { 0 }
  package var endIndex: Int { entries.count }

  package subscript(index: Int) -> Element {
    get { entries[index].element }
    set { entries[index].element = newValue }
  }

  /// Adds an element of `count` bytes, and drops the oldest elements above the limits.
  package mutating func append(_ element: Element, bytes count: Int = 0) {
    entries.append((element, count))
    bytes += count
    while entries.count > countMax || bytes > bytesMax, entries.count > 1 {
      bytes -= entries.removeFirst().bytes
      dropped += 1
    }
  }
}

extension RecentElements: Sendable where Element: Sendable {}
