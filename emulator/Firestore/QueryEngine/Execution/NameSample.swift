package import DocumentModel
package import StorageEngine

/// Evenly spaced names in a collection group as of one moment, found by reading only keys.
///
/// The sample reads a bounded part at a time, each from a later snapshot, and is given the
/// documents changed since the moment. The result depends only on the moment. Memory is bounded: if
/// too many names are kept, every second one is dropped.
package struct NameSample: Sendable {
  private let query: PreparedQuery
  /// The sequence number of the moment's commit, if it is before the first snapshot's.
  private let sequence: UInt64?
  private let keptMax: Int
  /// The keys still to be read; nil at the end.
  private var left: KeyRange?
  /// The documents changed since the moment, by key, whether they existed then or not.
  private var changed: [[UInt8]: DocumentName] = [:]
  /// The keys of changed documents that existed then and have not been passed, in order.
  private var older: ArraySlice<[UInt8]> = []
  /// Every `stride`-th key, starting with the first.
  private var kept: [[UInt8]] = []
  private var stride = 1
  private var seen = 0

  /// Creates a sample of a query for a whole group that keeps at most `keptMax` names.
  package init(_ query: PreparedQuery, at sequence: UInt64?, keptMax: Int) {
    self.query = query
    self.sequence = sequence
    self.keptMax = keptMax
    left = query.keyRange
  }

  /// True if everything has been read.
  package var isEnded: Bool { left == nil }

  /// Adds documents that changed since the moment, as they were then; nil if they did not exist.
  package mutating func add(older documents: [DocumentName: FirestoreDocument?]) {
    guard let left else { return }
    var new: [[UInt8]] = []
    for (name, document) in documents {
      let key = DocumentKeys.key(name)
      guard changed.updateValue(name, forKey: key) == nil else { continue }
      // Keys that have been read already were counted before the change.
      if let document, query.matches(document), left.contains(key) { new.append(key) }
    }
    guard !new.isEmpty else { return }
    older = (older + new).sorted { ValueOrder.compareBytes($0, $1) == .less }[...]
  }

  /// Reads until the budget is spent or nothing is left.
  package mutating func readOn(
    _ snapshot: any StorageSnapshot,
    _ budget: inout CandidateBudget
  ) throws {
    guard let range = left, let collectionID = query.query.collectionID else { return left = nil }
    var position: [UInt8]?
    let stopped = try DocumentScan(snapshot: snapshot, database: query.query.database).groupKeys(
      collectionID,
      in: range,
      passing: {
        budget.spend()
        return !budget.isSpent
      }
    ) { key, version in
      takeOlder(before: key)
      budget.spendKey()
      if sequence.map({ version <= $0 }) ?? true, changed.isEmpty || changed[key] == nil {
        take(key)
      }
      guard budget.isSpent else { return true }
      position = key + [0]
      return false
    }
    if let next = position ?? stopped {
      left?.startAtLeast(next)
    } else {
      takeOlder(before: nil)
      left = nil
    }
  }

  /// Returns the kept names, in order.
  package func names(in snapshot: any StorageSnapshot) throws -> [DocumentName] {
    try kept.compactMap { key in
      if let name = changed[key] { return name }
      return try snapshot.get(DocumentKeys.keyspace, key).map {
        try DocumentKeys.decodeName($0.bytes)
      }
    }.sorted()
  }

  private mutating func takeOlder(before key: [UInt8]?) {
    while let first = older.first, key.map({ ValueOrder.compareBytes(first, $0) == .less }) ?? true
    {
      older.removeFirst()
      take(first)
    }
  }

  private mutating func take(_ key: [UInt8]) {
    defer { seen += 1 }
    guard seen.isMultiple(of: stride) else { return }
    kept.append(key)
    guard kept.count > keptMax else { return }
    kept = kept.enumerated().compactMap { $0.offset.isMultiple(of: 2) ? $0.element : nil }
    stride *= 2
  }
}
