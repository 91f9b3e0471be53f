package import DocumentModel
import StorageEngine

/// A query on its way, which shows one moment while it reads later and later snapshots.
///
/// Every snapshot is read as of that moment: whoever runs the query tells the documents that were
/// changed since.
package struct QueryRun: Sendable {
  /// The query, with its offset and limit.
  package let query: PreparedQuery
  /// The documents changed since the query's moment, as they were then; nil where there was none.
  private var overlay: [DocumentName: FirestoreDocument?] = [:]
  private var execution: QueryExecution?
  /// What is left of the query for the next execution.
  private var rest: PreparedQuery
  /// What executions did whose index went away, and what of their results nobody has taken yet.
  private var past = QueryStatistics()
  private var leftover: ArraySlice<FirestoreDocument> = []

  /// The moment's commit, when it is before the first snapshot's.
  private let sequence: UInt64?

  /// A run that has read nothing.
  ///
  /// With a sequence, one whose moment is before its first snapshot's: documents that were written
  /// by later commits, and are not told as changed, were created by them.
  package init(_ query: PreparedQuery, at sequence: UInt64? = nil) {
    self.query = query
    self.sequence = sequence
    rest = query
  }

  /// Whether every result has been handed out.
  package private(set) var isEnded = false

  /// Adds documents that were changed since the query's moment, as they were then.
  ///
  /// The first version that is told of a document stays.
  package mutating func add(older documents: [DocumentName: FirestoreDocument?]) {
    guard execution?.isReading ?? true else { return }
    var new: [FirestoreDocument] = []
    for (name, document) in documents where overlay.index(forKey: name) == nil {
      overlay.updateValue(document, forKey: name)
      if let document { new.append(document) }
    }
    execution?.add(older: new)
  }

  /// What the run has cost so far.
  package var statistics: QueryStatistics {
    var statistics = past
    statistics.returned -= leftover.count
    guard let execution else { return statistics }
    statistics.scanned += execution.scanned
    statistics.passedEntries += execution.passedEntries
    statistics.skipped += execution.emitter.skipped
    statistics.returned += execution.emitter.returned - execution.emitter.readyCount
    if case .indexes(let ranges) = execution.plan {
      statistics.indexes = Set(ranges.flatMap(\.all).map(\.index.definition))
        .sorted { $0.description < $1.description }
    }
    return statistics
  }

  /// The stored size of documents that the run keeps until they are handed out, or a little more.
  package var sortedBytes: Int { execution?.sortedBytes ?? 0 }

  var plan: QueryPlan { execution?.plan ?? .scan }

  mutating func goOn(
    _ snapshot: any StorageSnapshot,
    _ budget: inout CandidateBudget,
    isUsable: (_ index: UInt64) -> Bool,
    plan: (PreparedQuery) throws -> QueryExecution,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    if let execution, execution.isReading, !execution.plan.indexIDs.allSatisfy(isUsable) {
      abandonExecution()
    }
    while let document = leftover.popFirst() {
      guard try body(document) else { return }
    }
    var current = try execution.take() ?? begun(by: plan)
    defer { execution = current }
    while true {
      while let document = current.next() {
        guard try body(document) else { return }
      }
      guard !current.isEnded else { return isEnded = true }
      guard !budget.isSpent else { return }
      try current.readOn(snapshot, &budget, changed: overlay, at: sequence)
    }
  }

  /// Ends an execution that cannot go on, so that another one does its rest.
  private mutating func abandonExecution() {
    guard var old = execution.take() else { return }
    past.scanned += old.scanned
    past.passedEntries += old.passedEntries
    past.skipped += old.emitter.skipped
    past.returned += old.emitter.returned
    if let last = old.emitter.last {
      rest = rest.continuing(
        after: last,
        skipped: old.emitter.skipped,
        returned: old.emitter.returned
      )
    }
    while let document = old.next() { leftover.append(document) }
  }

  private func begun(by plan: (PreparedQuery) throws -> QueryExecution) throws -> QueryExecution {
    var execution = try plan(rest)
    execution.add(older: overlay.values.compactMap(\.self))
    return execution
  }
}
