package import DocumentModel
import StorageEngine

/// A query in progress that shows one moment while it reads increasingly later snapshots.
///
/// Each snapshot is read as of that moment: the caller supplies the documents that were changed
/// since.
package struct QueryRun: Sendable {
  /// The query with its offset and limit.
  package let query: PreparedQuery
  /// The documents changed since the query's moment, as they were then; nil if they did not exist.
  private var overlay: [DocumentName: FirestoreDocument?] = [:]
  private var execution: QueryExecution?
  /// The remainder of the query, for the next execution.
  private var rest: PreparedQuery
  /// The statistics of executions whose index was removed, and their results not yet taken.
  private var past = QueryStatistics()
  private var leftover: ArraySlice<FirestoreDocument> = []

  /// The sequence number of the moment's commit, if it is before the first snapshot's.
  private let sequence: UInt64?

  /// Creates a run that has read nothing.
  ///
  /// Pass a sequence number if the moment is before the first snapshot's. Documents that later
  /// commits wrote and that are not reported as changed are then treated as created by those
  /// commits.
  package init(_ query: PreparedQuery, at sequence: UInt64? = nil) {
    self.query = query
    self.sequence = sequence
    rest = query
  }

  /// True if every result has been returned.
  package private(set) var isEnded = false

  /// Adds documents that were changed since the query's moment, as they were then.
  ///
  /// The first version added for a document is kept; these are returned.
  @discardableResult
  package mutating func add(
    older documents: [DocumentName: FirestoreDocument?]
  ) -> [FirestoreDocument] {
    guard execution?.isReading ?? true else { return [] }
    var new: [FirestoreDocument] = []
    for (name, document) in documents where overlay.index(forKey: name) == nil {
      overlay.updateValue(document, forKey: name)
      if let document { new.append(document) }
    }
    execution?.add(older: new)
    return new
  }

  /// The cost of the run so far.
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

  /// The approximate stored size of documents that the run holds until they are returned.
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

  /// Ends an execution that cannot continue, so that a new one does the rest.
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
