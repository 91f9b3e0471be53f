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
  /// Few enough to be searched one by one: those that count, and each that the request is about.
  private var entries: [Entry] = []
  private var countedDocuments = 0
  /// What may still be done with large values, for all documents of the request.
  var work: Int
  /// Whether the request is to be decided anew, with more work, where this does not suffice.
  private let isBrief: Bool

  /// The bound of a request with one document is 10, of others 20, and 10 for each document.
  ///
  /// `workMax` counts what is done with texts, lists and patterns, in the units of `LinearPattern` and
  /// `RuleValue.weight`: the default is about half a second of one core. A brief ledger has at most
  /// `briefWorkMax` of it, some milliseconds; see `isInsufficient`.
  package init(isSingle: Bool, workMax: Int = 20_000_000, isBrief: Bool = false) {
    totalMax = isSingle ? 10 : 20
    work = isBrief ? min(workMax, Self.briefWorkMax) : workMax
    self.workMax = workMax
    self.isBrief = isBrief
  }

  private static let briefWorkMax = 200_000

  /// Whether a brief ledger's work was used up, so that nothing is decided.
  package var isInsufficient: Bool { isBrief && work < 0 }

  /// The same documents, to look at more of them without counting them for the request.
  func copy() -> AccessLedger {
    let other = AccessLedger(isSingle: totalMax == 10, workMax: workMax, isBrief: isBrief)
    other.entries = entries
    other.countedDocuments = countedDocuments
    return other
  }

  /// The place of a document, which stays the same during the request.
  func place(of path: RulePath) -> Int {
    if let place = entries.firstIndex(where: { $0.path == path }) { return place }
    entries.append(Entry(path: path))
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
