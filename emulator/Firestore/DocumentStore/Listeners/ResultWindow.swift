import DocumentModel
import Events
import QueryEngine

/// The results of a query with a limit or an offset, updated change by change.
///
/// It knows all matching documents up to a bound somewhat beyond the last result. A few results can
/// therefore leave before the store must be read for the documents that move up.
struct ResultWindow: Sendable {
  /// The number of documents beyond the results that are known when the window is filled.
  private static let slack = 16
  /// The number of known documents beyond the results above which the last ones are dropped.
  private static let slackMax = 64

  let query: PreparedQuery
  private let from: Int
  /// The index after the last result; nil without a limit.
  private let to: Int?
  /// The first matching documents, in order.
  private var known: [FirestoreDocument] = []
  /// True if no further document matches.
  private var isComplete = false

  /// Creates a window without known documents.
  init(_ query: PreparedQuery) {
    self.query = query
    from = query.query.offset
    to = query.query.limit.map { query.query.offset + $0 }
  }

  /// The current results; valid only while no documents are missing.
  var results: ArraySlice<FirestoreDocument> {
    known[resultPlaces]
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

  /// Adds the documents that the query `missing` has found.
  mutating func fill(_ found: [FirestoreDocument], asked limit: Int?) {
    known += found
    isComplete = limit.map { found.count < $0 } ?? true
  }

  /// Returns true if a change can affect the results.
  func concerns(_ change: DocumentChange) -> Bool {
    change.before.map(query.matches) ?? false || change.after.map(query.matches) ?? false
  }

  /// The effect of one commit on the positions of the known documents.
  struct Shift: Sendable {
    /// A document that the commit added to the known documents or removed from them.
    fileprivate struct Move: Sendable {
      var place: Int
      var change: DocumentChange
    }

    /// The positions of the results before the commit.
    fileprivate var results: Range<Int>
    /// The removed documents by their positions before the commit, in order.
    fileprivate var removed: [Move] = []
    /// The added documents by their positions after the commit, in order.
    fileprivate var inserted: [Move] = []
    /// The number of known documents after the commit, before the window was filled.
    fileprivate var knownCount = 0

    /// Returns the position before the commit of a document that the commit did not change.
    fileprivate func former(_ place: Int) -> Int {
      var former = place - inserted.prefix { $0.place < place }.count
      for move in removed {
        guard move.place <= former else { break }
        former += 1
      }
      return former
    }

    /// Returns the position after the commit of a document that the commit did not change.
    fileprivate func present(_ place: Int) -> Int {
      var present = place - removed.prefix { $0.place < place }.count
      for move in inserted {
        guard move.place <= present else { break }
        present += 1
      }
      return present
    }
  }

  /// Applies the changes of one commit.
  ///
  /// `trim` may follow once no documents are missing and the difference has been computed.
  mutating func apply(_ changes: [DocumentChange]) -> Shift {
    var shift = Shift(results: resultPlaces)
    for change in changes {
      if let before = change.before, query.matches(before), case let place = place(of: before),
        place < known.count, known[place].name == before.name
      {
        shift.removed.append(Shift.Move(place: place, change: change))
      }
    }
    shift.removed.sort { $0.place < $1.place }
    for move in shift.removed.reversed() { known.remove(at: move.place) }
    let entering = changes.compactMap { change in
      change.after.flatMap { query.matches($0) ? (document: $0, change: change) : nil }
    }
    // In order, so that an insertion does not move documents that were inserted before it.
    for (document, change) in entering.sorted(by: {
      query.compare($0.document, $1.document) == .less
    }) {
      let place = place(of: document)
      // Beyond the known documents, unknown ones may come first.
      guard place < known.count || isComplete else { break }
      known.insert(document, at: place)
      shift.inserted.append(Shift.Move(place: place, change: change))
    }
    shift.knownCount = known.count
    return shift
  }

  /// Returns the shift including documents that left and came back when the window was filled.
  private func withReturned(_ shift: Shift) -> Shift {
    guard known.count > shift.knownCount, !shift.removed.isEmpty else { return shift }
    let removed = Dictionary(
      uniqueKeysWithValues: shift.removed.map { ($0.change.name, $0.change) }
    )
    var shift = shift
    for place in shift.knownCount..<known.count {
      guard let change = removed[known[place].name] else { continue }
      shift.inserted.append(Shift.Move(place: place, change: change))
    }
    return shift
  }

  /// Drops the last documents if there are many more than needed.
  mutating func trim() {
    guard let to, known.count > to + Self.slackMax else { return }
    known.removeLast(known.count - to - Self.slack)
    isComplete = false
  }

  private var resultPlaces: Range<Int> {
    let end = min(to ?? known.count, known.count)
    return min(from, end)..<end
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

  /// Returns the changes of the results by one commit, at a cost proportional to the commit's size.
  ///
  /// Documents that the commit did not change keep their order, so those that enter or leave the
  /// results do so at either end.
  func difference(by shift: Shift) -> [ListenedChange] {
    let shift = withReturned(shift)
    var members: [(place: Int, change: ListenedChange)] = []
    var others: [(place: Int, change: ListenedChange)] = []
    let (old, new) = (shift.results, resultPlaces)
    var shown: Set<DocumentName> = []
    for move in shift.inserted where new.contains(move.place) {
      shown.insert(move.change.name)
      members.append((move.place, .member(ListenedDocument(known[move.place]))))
    }
    for move in shift.removed where old.contains(move.place) && !shown.contains(move.change.name) {
      let after = move.change.after.map { ListenedChange.former(ListenedDocument($0)) }
      others.append((move.place, after ?? .deleted(move.change.name)))
    }
    let inserted = Set(shift.inserted.map(\.place))
    Self.atEnds(of: new, except: inserted, until: { old.contains(shift.former($0)) }) { place in
      members.append((place, .member(ListenedDocument(known[place]))))
    }
    let removed = Set(shift.removed.map(\.place))
    Self.atEnds(of: old, except: removed, until: { new.contains(shift.present($0)) }) { place in
      others.append((place, .departed(known[shift.present(place)].name)))
    }
    members.sort { $0.place < $1.place }
    others.sort { $0.place < $1.place }
    return members.map(\.change) + others.map(\.change)
  }

  /// Calls `body` with the positions from both ends of a range up to one that satisfies `until`.
  private static func atEnds(
    of places: Range<Int>,
    except skipped: Set<Int>,
    until isShared: (Int) -> Bool,
    _ body: (Int) -> Void
  ) {
    let isStop = { place in !skipped.contains(place) && isShared(place) }
    let first = places.first(where: isStop) ?? places.upperBound
    for place in places.lowerBound..<first where !skipped.contains(place) { body(place) }
    guard first < places.upperBound, let last = places.last(where: isStop) else { return }
    for place in (last + 1)..<places.upperBound where !skipped.contains(place) { body(place) }
  }
}
