/// The set of fields that a reader needs, so that a decoder can skip the others.
package struct FieldSelection: Sendable, Hashable {
  /// The selected members, sorted by the bytes of their names; each name occurs once.
  private(set) var members: [Member] = []

  /// One selected member of a map.
  struct Member: Sendable, Hashable {
    /// The name's UTF-8 bytes.
    var name: [UInt8]
    /// The selection inside the member's own map; nil selects the whole value.
    var inner: FieldSelection?
  }

  /// Creates a selection of the values at the given paths; `__name__` selects no field.
  package init(_ paths: some Sequence<FieldPath>) {
    for path in paths where !path.isDocumentID { insert(path.segments[...]) }
  }

  private init() {}

  /// True if no field is selected.
  package var isEmpty: Bool { members.isEmpty }

  /// Returns the index of the selected member whose name is at a range of `bytes`.
  func place(of bytes: UnsafeBufferPointer<UInt8>, in range: Range<Int>) -> Int? {
    var low = 0
    var high = members.count
    while low < high {
      let middle = (low + high) / 2
      switch Self.compare(members[middle].name, bytes, range) {
      case .less: low = middle + 1
      case .equal: return middle
      case .greater: high = middle
      }
    }
    return nil
  }

  private static func compare(
    _ left: [UInt8],
    _ bytes: UnsafeBufferPointer<UInt8>,
    _ range: Range<Int>
  ) -> Ordering {
    for offset in 0..<min(left.count, range.count) {
      let (a, b) = (left[offset], bytes[range.lowerBound + offset])
      if a != b { return a < b ? .less : .greater }
    }
    return left.count == range.count ? .equal : left.count < range.count ? .less : .greater
  }

  private mutating func insert(_ segments: ArraySlice<String>) {
    guard let first = segments.first else { return }
    let name = Array(first.utf8)
    let rest = segments.dropFirst()
    let index =
      members.firstIndex { ValueOrder.compareBytes($0.name, name) != .less } ?? members.endIndex
    if index == members.endIndex || members[index].name != name {
      members.insert(Member(name: name, inner: FieldSelection()), at: index)
    }
    if rest.isEmpty {
      members[index].inner = nil
    } else {
      // A nil `inner` already selects the whole value.
      members[index].inner?.insert(rest)
    }
  }
}
