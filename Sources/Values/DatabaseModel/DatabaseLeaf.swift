/// A value without children, or a priority, which is never a boolean.
package enum DatabaseLeaf: Sendable, Hashable {
  case boolean(Bool)
  case number(Double)
  case string(String)

  /// The maximum length of a string in UTF-8.
  package static let stringBytesMax = 10 << 20

  package static func == (left: DatabaseLeaf, right: DatabaseLeaf) -> Bool {
    switch (left, right) {
    case (.boolean(let left), .boolean(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.isExactly(right)
    default: false
    }
  }

  package func hash(into hasher: inout Hasher) {
    switch self {
    case .boolean(let flag): hasher.combine(flag)
    case .number(let number): hasher.combine(number)
    case .string(let text): text.hashExactly(into: &hasher)
    }
  }
}

extension DatabaseLeaf: Comparable {
  package static func < (left: DatabaseLeaf, right: DatabaseLeaf) -> Bool {
    switch (left, right) {
    case (.boolean(let left), .boolean(let right)): !left && right
    case (.number(let left), .number(let right)): left < right
    case (.string(let left), .string(let right)): left.precedes(right)
    default: left.rank < right.rank
    }
  }

  private var rank: Int {
    switch self {
    case .boolean: 0
    case .number: 1
    case .string: 2
    }
  }
}
