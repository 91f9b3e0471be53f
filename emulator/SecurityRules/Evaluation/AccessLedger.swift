/// The documents that the rules have looked at for one request, which are bounded.
package final class AccessLedger {
  /// One document.
  private struct Entry {
    let path: RulePath
    /// Its value before the request; nil until it was looked at, null where there is no document.
    var before: RuleValue?
    /// Its value after the request, likewise.
    var after: RuleValue?
    /// Whether it counts for the request.
    var isCounted = false
  }

  let totalMax: Int
  private let workMax: Int
  /// Those that count, and each that the request is about and that its own rules look at.
  private var entries: [Entry] = []
  /// Where they are, once they are too many to be searched one by one.
  private var places: [RulePath: Int] = [:]
  private var countedDocuments = 0
  /// What may still be done with large values, for all documents of the request.
  var work: Int
  /// Expressions that were evaluated for all documents of the request.
  var expressions = 0
  /// Whether the request is decided again, with more work, where this does not suffice.
  private let isBrief: Bool

  /// The bound of a request with one document is 10, of others 20, and 10 for each document.
  ///
  /// `workMax` counts what is done with texts, lists and patterns, in the units of `LinearPattern`
  /// and `RuleValue.weight`: the default is about half a second of one core. A brief ledger has at
  /// most `briefWorkMax` of it, some milliseconds; see `isInsufficient`.
  package init(isSingle: Bool, workMax: Int = 20_000_000, isBrief: Bool = false) {
    totalMax = isSingle ? 10 : 20
    work = isBrief ? min(workMax, Self.briefWorkMax) : workMax
    self.workMax = workMax
    self.isBrief = isBrief
  }

  private static let briefWorkMax = 200_000
  private static let briefExpressionsMax = 10_000
  private static let searchedMax = 20

  /// Whether what a brief ledger has was used up, so that nothing is decided.
  package var isInsufficient: Bool {
    isBrief && (work < 0 || expressions > Self.briefExpressionsMax)
  }

  /// The same documents, to look at more of them without counting them for the request.
  func copy() -> AccessLedger {
    let other = AccessLedger(isSingle: totalMax == 10, workMax: workMax, isBrief: isBrief)
    other.entries = entries
    other.places = places
    other.countedDocuments = countedDocuments
    return other
  }

  /// The place of a document, which stays the same during the request.
  func place(of path: RulePath) -> Int {
    if entries.count <= Self.searchedMax {
      if let place = entries.firstIndex(where: { $0.path == path }) { return place }
    } else if let place = places[path] {
      return place
    }
    entries.append(Entry(path: path))
    if entries.count == Self.searchedMax + 1 {
      for (place, entry) in entries.enumerated() { places[entry.path] = place }
    } else if entries.count > Self.searchedMax {
      places[path] = entries.count - 1
    }
    return entries.count - 1
  }

  /// The value of a document; null where there is none, nil until it was looked at.
  func value(at place: Int, after: Bool) -> RuleValue? {
    after ? entries[place].after : entries[place].before
  }

  func setValue(_ value: RuleValue, at place: Int, after: Bool) {
    if after { entries[place].after = value } else { entries[place].before = value }
  }

  /// Counts a document, once; false when the request has looked at too many.
  func count(at place: Int) -> Bool {
    if entries[place].isCounted { return true }
    guard countedDocuments < totalMax else { return false }
    countedDocuments += 1
    entries[place].isCounted = true
    return true
  }
}
