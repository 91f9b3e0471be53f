import DocumentModel
import StorageEngine

/// The entries of an index range whose documents are also in all ranges it is joined with.
///
/// Joined ranges have the same order after their bound components: the remaining fields, then the
/// name. Each range in turn advances to the first entry that is not before those of the others.
/// Long runs of entries that are missing from another range are skipped this way.
struct IndexJoin: Sendable {
  private var cursors: [IndexCursor]
  /// The prefix of the keys of each range.
  private let bounds: [[UInt8]]

  /// The result of advancing.
  enum Step<Found: Sendable>: Sendable {
    case found(Found)
    case isAtEnd
    /// The budget was spent before the result was known.
    case isSpent

    var found: Found? { if case .found(let found) = self { found } else { nil } }
  }

  init(_ range: IndexRange) {
    cursors = range.all.map { IndexCursor($0) }
    bounds = range.all.map(\.bound)
  }

  /// Returns the first range's entry of the next document that is in all ranges.
  mutating func next(_ candidates: inout Candidates) throws -> Step<IndexEntry> {
    while let first = try cursors[0].peek(on: candidates.snapshot) {
      guard cursors.count > 1 else { break }
      guard !candidates.budget.isSpent else { return .isSpent }
      let wanted = first.key[bounds[0].count...]
      guard let reached = try advance(to: wanted, &candidates) else { return .isAtEnd }
      if reached.elementsEqual(wanted) { break }
      candidates.pass(entries: cursors[0].seek(bounds[0] + reached))
    }
    guard let entry = try cursors[0].next(on: candidates.snapshot) else { return .isAtEnd }
    return .found(entry)
  }

  /// Advances the other ranges to an entry; returns it, or a later one that a range reached.
  ///
  /// Returns nil if a range is at its end.
  private mutating func advance(
    to wanted: ArraySlice<UInt8>,
    _ candidates: inout Candidates
  ) throws -> ArraySlice<UInt8>? {
    for position in cursors.indices.dropFirst() {
      candidates.pass(entries: cursors[position].seek(bounds[position] + wanted))
      guard let entry = try cursors[position].peek(on: candidates.snapshot) else { return nil }
      let own = entry.key[bounds[position].count...]
      guard own.elementsEqual(wanted) else { return own }
    }
    return wanted
  }
}
