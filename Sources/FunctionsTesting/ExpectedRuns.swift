import Synchronization

/// How often a function is expected to run.
///
/// An integer literal is an exact number: `["embedMessage": 1, "recordContact": .atLeast(1)]`.
public struct ExpectedRuns: Sendable, Hashable, ExpressibleByIntegerLiteral {
  private let least: Int
  private let most: Int

  /// This often.
  public static func exactly(_ count: Int) -> ExpectedRuns { ExpectedRuns(count, count) }

  /// This often or more, as with `DeliveryFaults`.
  public static func atLeast(_ count: Int) -> ExpectedRuns { ExpectedRuns(count, .max) }

  /// However often.
  public static let any = ExpectedRuns(0, .max)

  /// This often.
  public init(integerLiteral count: Int) {
    self.init(count, count)
  }

  private init(_ least: Int, _ most: Int) {
    self.least = least
    self.most = most
  }

  func allows(_ count: Int) -> Bool { least <= count && count <= most }
}

extension ExpectedRuns: CustomStringConvertible {
  /// The number, with `at least` where there may be more.
  public var description: String { least == most ? "\(least)" : "at least \(least)" }
}

extension FunctionsSuite {
  /// Counts runs anew from here, for `expectRuns`.
  public func mark() { core.mark.withLock { $0 = core.recorder.counts } }

  /// Checks that these functions ran so often since the last check or `mark`, and that no others did.
  ///
  /// A run is a call or an attempt at an event, so retries count. `"*"` stands for all functions that
  /// are not named, taken together: `["greet": 1, "*": .any]`. The next check counts from here. Throws
  /// `unexpectedRuns`, which lists what differs, and `noSuchFunction` for a name that is none.
  public func expectRuns(_ expected: [String: ExpectedRuns]) throws {
    let now = core.recorder.counts
    let before = core.mark.withLock { mark in
      defer { mark = now }
      return mark
    }
    let unknown = expected.keys.filter { $0 != Self.others && core.functions[$0] == nil }
    if let unknown = unknown.min() { throw core.unknownFunction(unknown) }
    let runs = now.map { ($0, $1 - before[$0, default: 0]) }
    let counts = Dictionary(uniqueKeysWithValues: runs).filter { $0.value > 0 }
    let differences = differences(of: counts, from: expected)
    guard !differences.isEmpty else { return }
    throw FunctionsTestingError(
      .unexpectedRuns,
      "Functions ran otherwise than expected: \(differences.joined(separator: "; "))."
    )
  }

  /// Checks that what `body` does makes these functions run so often, and no others.
  ///
  /// What was pending before is settled first and not counted, and everything is settled after
  /// `body`; besides what the other throws, throws what `body` and `settle` throw.
  @discardableResult
  public func expectRuns<Output>(
    _ expected: [String: ExpectedRuns],
    isolation: isolated (any Actor)? = #isolation,
    of body: () async throws -> Output
  ) async throws -> Output {
    try await settle()
    mark()
    let output = try await body()
    try await settle()
    try expectRuns(expected)
    return output
  }

  private static let others = "*"

  private func differences(
    of counts: [String: Int],
    from expected: [String: ExpectedRuns]
  ) -> [String] {
    var differences: [String] = []
    for (name, expectation) in expected.sorted(by: { $0.key < $1.key }) where name != Self.others {
      let count = counts[name, default: 0]
      if !expectation.allows(count) {
        differences.append("\(described(name, count)), expected \(expectation)")
      }
    }
    let unnamed = counts.filter { expected[$0.key] == nil }.sorted { $0.key < $1.key }
    let total = unnamed.reduce(0) { $0 + $1.value }
    guard let expectation = expected[Self.others] else {
      return differences + unnamed.map { "\(described($0.key, $0.value)), not expected" }
    }
    guard !expectation.allows(total) else { return differences }
    let list = unnamed.map { described($0.key, $0.value) }.joined(separator: ", ")
    return differences
      + ["others ran \(total) times (\(list.isEmpty ? "none" : list)), expected \(expectation)"]
  }

  /// How often a function ran, and why it failed where it did.
  private func described(_ name: String, _ count: Int) -> String {
    var text = "\(name) ran \(count == 1 ? "once" : "\(count) times")"
    if count > 0, case .failed(let error)? = runs(of: name).last?.outcome {
      text += " (and failed: \(error))"
    }
    return text
  }
}
