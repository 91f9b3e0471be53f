public import FunctionsRuntime
import Synchronization

/// The expected number of runs of a function.
///
/// An integer literal stands for an exact number: `[functions.embedMessage: 1, functions.index:
/// .atLeast(1)]`.
public struct RunExpectation: Sendable, Hashable, ExpressibleByIntegerLiteral {
  private let least: Int
  private let most: Int

  /// Creates the expectation of exactly this number of runs.
  public static func exactly(_ count: Int) -> RunExpectation { RunExpectation(count, count) }

  /// Returns the expectation of at least this number of runs, for use with `DeliveryFaults`.
  public static func atLeast(_ count: Int) -> RunExpectation { RunExpectation(count, .max) }

  /// An expectation that any number of runs satisfies.
  public static let any = RunExpectation(0, .max)

  /// Creates the expectation of exactly this number of runs.
  public init(integerLiteral count: Int) {
    self.init(count, count)
  }

  private init(_ least: Int, _ most: Int) {
    self.least = least
    self.most = most
  }

  func allows(_ count: Int) -> Bool { least <= count && count <= most }
}

extension RunExpectation: CustomStringConvertible {
  /// The expected number, preceded by `at least` if more runs are allowed.
  public var description: String { least == most ? "\(least)" : "at least \(least)" }
}

/// The expected numbers of runs by function, as a literal: `[functions.welcome: 1]`.
public struct ExpectedRuns: Sendable, ExpressibleByDictionaryLiteral {
  var byName: [String: RunExpectation]

  /// Creates expectations for functions.
  ///
  /// If a function is listed twice, the last one applies.
  public init(dictionaryLiteral elements: (any CloudFunction, RunExpectation)...) {
    byName = Dictionary(elements.map { ($0.name, $1) }) { $1 }
  }
}

extension FunctionsSuite {
  /// Sets the point from which `expectRuns` counts runs to the present.
  public func mark() { core.mark.withLock { $0 = core.recorder.counts } }

  /// Checks how often functions ran since the last check or `mark`.
  ///
  /// A run is a call or an attempt at an event, so retries count. `others` applies to the total
  /// runs of all functions that `expected` does not list; by default they must not run. The next
  /// check counts from this one.
  ///
  /// Records an issue at the caller's line with a list of the differences, or for a function that
  /// the suite does not have. Outside a test of Swift Testing or XCTest it throws the issue as a
  /// `FunctionsTestingError` of the kind `unexpectedRuns` or `noSuchFunction`.
  public func expectRuns(
    _ expected: ExpectedRuns,
    others: RunExpectation = 0,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column
  ) throws {
    do {
      try check(expected, others)
    } catch let error as FunctionsTestingError {
      try CallSite(fileID, filePath, line, column).record(error)
    }
  }

  /// Compares the runs since the mark with the expected ones, and sets the mark to the present.
  private func check(_ expected: ExpectedRuns, _ others: RunExpectation) throws {
    let now = core.recorder.counts
    let before = core.mark.withLock { mark in
      defer { mark = now }
      return mark
    }
    for name in expected.byName.keys.sorted() { try core.definition(named: name) }
    let runs = now.map { ($0, $1 - before[$0, default: 0]) }
    let counts = Dictionary(uniqueKeysWithValues: runs).filter { $0.value > 0 }
    let differences = differences(of: counts, from: expected.byName, others)
    guard !differences.isEmpty else { return }
    throw FunctionsTestingError(
      .unexpectedRuns,
      "Functions ran otherwise than expected: \(differences.joined(separator: "; "))."
    )
  }

  /// Checks how often `body` makes functions run.
  ///
  /// ```swift
  /// try await suite.expectRuns([functions.welcome: 1]) {
  ///   try await suite.firestore.document("users/tina").set(User(name: "Tina"))
  /// }
  /// ```
  ///
  /// Pending events are settled before `body` and do not count. All events are settled again after
  /// it. `others` applies to the total runs of all functions that `expected` does not list. Records
  /// the issues of `settle` and of `expectRuns(_:others:)` at the caller's line, and rethrows the
  /// error of `body`.
  @discardableResult
  public func expectRuns<Output>(
    _ expected: ExpectedRuns,
    others: RunExpectation = 0,
    isolation: isolated (any Actor)? = #isolation,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column,
    of body: () async throws -> Output
  ) async throws -> Output {
    try await settle(fileID: fileID, filePath: filePath, line: line, column: column)
    mark()
    let output = try await body()
    try await settle(fileID: fileID, filePath: filePath, line: line, column: column)
    try expectRuns(
      expected,
      others: others,
      fileID: fileID,
      filePath: filePath,
      line: line,
      column: column
    )
    return output
  }

  private func differences(
    of counts: [String: Int],
    from expected: [String: RunExpectation],
    _ others: RunExpectation
  ) -> [String] {
    var differences: [String] = []
    for (name, expectation) in expected.sorted(by: { $0.key < $1.key }) {
      let count = counts[name, default: 0]
      if !expectation.allows(count) {
        differences.append("\(described(name, count)), expected \(expectation)")
      }
    }
    let unnamed = counts.filter { expected[$0.key] == nil }.sorted { $0.key < $1.key }
    guard others != 0 else {
      return differences + unnamed.map { "\(described($0.key, $0.value)), not expected" }
    }
    let total = unnamed.reduce(0) { $0 + $1.value }
    guard !others.allows(total) else { return differences }
    let list = unnamed.map { described($0.key, $0.value) }.joined(separator: ", ")
    return differences
      + ["others ran \(total) times (\(list.isEmpty ? "none" : list)), expected \(others)"]
  }

  /// Describes how often a function ran, and the error if its last run failed.
  private func described(_ name: String, _ count: Int) -> String {
    var text = "\(name) ran \(count == 1 ? "once" : "\(count) times")"
    if count > 0, case .failed(let error)? = core.recorder.runs(of: name).last?.outcome {
      text += " (and failed: \(error))"
    }
    return text
  }
}
