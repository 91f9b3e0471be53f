/// The documents that the rules have accessed for one request, and the limits on them.
package final class AccessLedger {
  /// A document with its values before and after the request.
  private struct Entry {
    let path: RulePath
    /// The value before the request; nil if it was not read, null if there is no document.
    var before: RuleValue?
    /// The value after the request; nil if it was not read, null if there is no document.
    var after: RuleValue?
    /// True if the document counts toward the request's limit.
    var isCounted = false
  }

  let totalMax: Int
  private let workMax: Int
  /// The counted documents, and documents of the request that its own rules access.
  private var entries: [Entry] = []
  /// The indices of the entries by path, used once there are too many for a linear search.
  private var places: [RulePath: Int] = [:]
  private var countedDocuments = 0
  /// The remaining work on large values, for all documents of the request.
  var work: Int
  /// The number of expressions evaluated for all documents of the request.
  var expressions = 0
  /// True if the request is decided again with a larger budget when this budget is used up.
  private let isBrief: Bool

  /// Creates the ledger of a request.
  ///
  /// A request for a single document has a smaller limit on the documents that its rules access.
  /// `workMax` limits the work on strings, lists and patterns; a brief ledger has less of it, see
  /// `isInsufficient`.
  package init(isSingle: Bool, workMax: Int = RulesLimits.workMax, isBrief: Bool = false) {
    totalMax = isSingle ? RulesLimits.accessesMax : RulesLimits.requestAccessesMax
    work = isBrief ? min(workMax, RulesLimits.briefWorkMax) : workMax
    self.workMax = workMax
    self.isBrief = isBrief
  }

  private static let searchedMax = 20

  /// True if the budget of a brief ledger was used up, so that there is no decision.
  package var isInsufficient: Bool {
    isBrief && (work < 0 || expressions > RulesLimits.briefExpressionsMax)
  }

  /// Returns a copy with the same documents, whose further accesses do not count for the request.
  func copy() -> AccessLedger {
    let isSingle = totalMax == RulesLimits.accessesMax
    let other = AccessLedger(isSingle: isSingle, workMax: workMax, isBrief: isBrief)
    other.entries = entries
    other.places = places
    other.countedDocuments = countedDocuments
    return other
  }

  /// Returns the index of a document, which stays the same during the request.
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

  /// Returns the value of a document; null if there is none, nil if it was not read.
  func value(at place: Int, after: Bool) -> RuleValue? {
    after ? entries[place].after : entries[place].before
  }

  func setValue(_ value: RuleValue, at place: Int, after: Bool) {
    if after { entries[place].after = value } else { entries[place].before = value }
  }

  /// Counts a document once; false if the request has accessed too many documents.
  func count(at place: Int) -> Bool {
    if entries[place].isCounted { return true }
    guard countedDocuments < totalMax else { return false }
    countedDocuments += 1
    entries[place].isCounted = true
    return true
  }
}
