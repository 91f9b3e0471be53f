import Synchronization

/// What the expressions of a rules file have been, over all requests since it was loaded.
package final class Coverage: Sendable {
  /// An expression's values and how often it had each.
  struct Node: Sendable {
    var counts: [(outcome: CoverageOutcome, count: Int)] = []
    /// Of all values, those that are not told as well.
    private(set) var total = 0

    mutating func add(_ outcome: CoverageOutcome) {
      total += 1
      if let place = counts.firstIndex(where: { $0.outcome == outcome }) {
        counts[place].count += 1
      } else if counts.count < Coverage.outcomesMax || outcome.isBool {
        counts.append((outcome, 1))
      }
    }
  }

  /// Different values that are told of one expression.
  static let outcomesMax = 20

  private let nodes = Mutex<[ObjectIdentifier: Node]>([:])

  /// Nothing seen yet.
  package init() {}

  func add(_ record: CoverageRecord) {
    nodes.withLock { nodes in
      for (expression, outcome) in record.entries {
        nodes[ObjectIdentifier(expression), default: Node()].add(outcome)
      }
    }
  }

  func node(_ expression: Expression) -> Node? {
    nodes.withLock { $0[ObjectIdentifier(expression)] }
  }
}

/// What the expressions of one evaluation were.
final class CoverageRecord {
  private(set) var entries: [(expression: Expression, outcome: CoverageOutcome)] = []

  func add(_ expression: Expression, _ result: Result<RuleValue, RuleError>) {
    if case .literal = expression.kind { return }
    entries.append((expression, CoverageOutcome(result)))
  }
}

/// A value as coverage tells it: what is large is told by its kind alone.
enum CoverageOutcome: Hashable, Sendable {
  case null, bool(Bool), int(Int64), float(Double), string(String), path([String])
  case kind(String)
  case failed(String, SourceRange)

  var isBool: Bool { if case .bool = self { true } else { false } }

  /// Characters of a text that are told.
  private static let textMax = 100

  init(_ result: Result<RuleValue, RuleError>) {
    switch result {
    case .success(.null): self = .null
    case .success(.bool(let value)): self = .bool(value)
    case .success(.int(let value)): self = .int(value)
    case .success(.float(let value)): self = .float(value)
    case .success(.string(let text)):
      self = .string(text.utf8.count <= Self.textMax ? text : String(text.prefix(Self.textMax)))
    case .success(.path(let path)): self = .path(path.segments)
    case .success(let value): self = .kind(value.typeName)
    case .failure(let error): self = .failed(error.message, error.range)
    }
  }
}
