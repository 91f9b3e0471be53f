import DocumentModel

/// The number and names of a target's documents, for a client whose documents may differ.
///
/// As in production, a resuming client is notified if it has documents that are no longer results,
/// and finds these documents with the names. Here, the client also receives their departures.
struct ResultCount: Sendable {
  var count: Int
  var names: BloomFilter
  /// True if the client had the right number of documents when it left.
  ///
  /// Only then may the count precede the departures. Otherwise a document that departs could stand
  /// in for one that the client has lost, and the client would find the count right.
  var precedesDepartures: Bool

  /// Creates the count of a set of names.
  init(_ names: some Collection<DocumentName>, precedesDepartures: Bool) {
    count = names.count
    self.names = BloomFilter(count: count)
    self.precedesDepartures = precedesDepartures
    for name in names { self.names.insert(name) }
  }
}
