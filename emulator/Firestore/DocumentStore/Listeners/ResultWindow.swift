import DocumentModel
import Events
import QueryEngine

/// The results of a query with a limit or an offset, kept up to date change by change.
///
/// It knows all documents that match up to a bound, which lies somewhat behind the last result, so
/// that a few can leave before the store must be asked for those that move up.
struct ResultWindow: Sendable {
  /// Documents beyond the results that are known when the window is filled.
  private static let slack = 16
  /// Documents beyond the results above which the last ones are forgotten.
  private static let slackMax = 64

  let query: PreparedQuery
  private let from: Int
  /// The place after the last result; nil without a limit.
  private let to: Int?
  /// The first documents that match, in order.
  private var known: [FirestoreDocument] = []
  /// Whether no further document matches.
  private var isComplete = false

  /// A window that knows nothing yet.
  init(_ query: PreparedQuery) {
    self.query = query
    from = query.query.offset
    to = query.query.limit.map { query.query.offset + $0 }
  }

  /// The results now; only meaningful while nothing is missing.
  var results: ArraySlice<FirestoreDocument> {
    let end = min(to ?? known.count, known.count)
    return known[min(from, end)..<end]
  }

  /// The query for documents that must be known before there are results, or nil.
  var missing: Query? {
    guard !isComplete, known.count < to ?? .max else { return nil }
    var query =
      known.last.map { self.query.continuing(after: $0, skipped: 0, returned: 0).query }
      ?? self.query.query
    query.offset = 0
    query.limit = to.map { $0 + Self.slack - known.count }
    return query
  }

  /// Takes what `missing` has found.
  mutating func fill(_ found: [FirestoreDocument], asked limit: Int?) {
    known += found
    isComplete = limit.map { found.count < $0 } ?? true
  }

  /// Whether a change can matter.
  func concerns(_ change: DocumentChange) -> Bool {
    change.before.map(query.matches) ?? false || change.after.map(query.matches) ?? false
  }

  /// Takes the changes of one commit.
  mutating func apply(_ changes: [DocumentChange]) {
    for change in changes {
      if let before = change.before, query.matches(before), case let place = place(of: before),
        place < known.count, known[place].name == before.name
      {
        known.remove(at: place)
      }
    }
    for change in changes {
      guard let after = change.after, query.matches(after) else { continue }
      let place = place(of: after)
      // Beyond what is known others may come first.
      if place < known.count || isComplete { known.insert(after, at: place) }
    }
    if let to, known.count > to + Self.slackMax {
      known.removeLast(known.count - to - Self.slack)
      isComplete = false
    }
  }

  private func place(of document: FirestoreDocument) -> Int {
    var low = 0
    var high = known.count
    while low < high {
      let middle = (low + high) / 2
      if query.compare(known[middle], document) == .less { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// What has become of the results since they were `old`, given the changes in between.
  func difference(
    from old: ArraySlice<FirestoreDocument>,
    by changes: [DocumentChange]
  ) -> [ListenedChange] {
    let oldNames = Set(old.map(\.name))
    var afters: [DocumentName: FirestoreDocument?] = [:]
    for change in changes { afters.updateValue(change.after, forKey: change.name) }
    var names: Set<DocumentName> = []
    var difference: [ListenedChange] = []
    for document in results {
      names.insert(document.name)
      if !oldNames.contains(document.name) || afters[document.name] != nil {
        difference.append(.member(ListenedDocument(document)))
      }
    }
    for document in old where !names.contains(document.name) {
      switch afters[document.name] {
      case .some(.some(let after)): difference.append(.former(ListenedDocument(after)))
      case .some(.none): difference.append(.deleted(document.name))
      case nil: difference.append(.departed(document.name))
      }
    }
    return difference
  }
}
