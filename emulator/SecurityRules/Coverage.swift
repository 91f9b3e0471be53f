import Synchronization

/// The values of a rules file's expressions over all requests since the file was loaded.
package final class Coverage: Sendable {
  /// The values of one expression, with the count of each value.
  struct Node: Sendable {
    private(set) var counts: [(outcome: CoverageOutcome, count: Int)] = []
    /// The number of all evaluations, including values that are not in `counts`.
    private(set) var total = 0
    /// The indices of true and false in `counts`, cached because they are the most frequent values.
    private var truePlace: Int?
    private var falsePlace: Int?

    mutating func add(_ outcome: CoverageOutcome) {
      total += 1
      if let place = place(of: outcome) {
        counts[place].count += 1
      } else if counts.count < Coverage.outcomesMax || outcome.isBool {
        if case .bool(let isTrue) = outcome {
          if isTrue { truePlace = counts.count } else { falsePlace = counts.count }
        }
        counts.append((outcome, 1))
      }
    }

    private func place(of outcome: CoverageOutcome) -> Int? {
      if case .bool(let isTrue) = outcome { return isTrue ? truePlace : falsePlace }
      return counts.firstIndex { $0.outcome == outcome }
    }
  }

  /// The maximum number of different values recorded for one expression.
  static let outcomesMax = 20

  /// The nodes by expression number, up to the highest number that was evaluated.
  private let nodes = Mutex<[Node]>([])

  /// Creates coverage without any evaluations.
  package init() {}

  func add(_ record: CoverageRecord) {
    nodes.withLock { nodes in
      for entry in record.entries {
        while nodes.count <= entry.number { nodes.append(Node()) }
        nodes[entry.number].add(entry.outcome)
      }
    }
  }

  func node(_ expression: Expression) -> Node? {
    nodes.withLock { nodes in
      guard nodes.indices.contains(expression.number) else { return nil }
      let node = nodes[expression.number]
      return node.total > 0 ? node : nil
    }
  }
}

/// The values of the expressions in one evaluation.
final class CoverageRecord {
  struct Entry {
    /// The number of the expression.
    var number: Int
    var outcome: CoverageOutcome
  }

  private(set) var entries: [Entry] = []

  init() { entries.reserveCapacity(Self.usualCount) }

  /// The number of expressions in a typical decision, for which the record need not grow.
  private static let usualCount = 128

  func add(_ expression: Expression, _ result: Result<RuleValue, RuleError>) {
    if case .literal = expression.kind { return }
    entries.append(Entry(number: expression.number, outcome: CoverageOutcome(result)))
  }
}

/// The value of an expression as coverage records it; large values are recorded only as their kind.
enum CoverageOutcome: Hashable, Sendable {
  case null, bool(Bool), int(Int64), float(Double), string(String), path([String])
  case kind(String)
  indirect case failed(String, SourceRange)

  var isBool: Bool { if case .bool = self { true } else { false } }

  /// The maximum number of scalars recorded of a string.
  private static let textMax = 100
  /// The maximum size of a recorded path in bytes: more than a document's name may have.
  private static let pathBytesMax = 7000

  init(_ result: Result<RuleValue, RuleError>) {
    switch result {
    case .success(.null): self = .null
    case .success(.bool(let value)): self = .bool(value)
    case .success(.int(let value)): self = .int(value)
    case .success(.float(let value)): self = .float(value)
    case .success(.string(let text)):
      self = .string(text.prefix(scalarsMax: Self.textMax))
    case .success(.path(let path))
    where path.segments.reduce(0, { $0 + $1.utf8.count }) <= Self.pathBytesMax:
      self = .path(path.segments)
    case .success(let value): self = .kind(value.typeName)
    case .failure(let error): self = .failed(error.message, error.range)
    }
  }
}
