import DocumentModel

/// The number and names of a target's documents, for a client whose documents may differ.
///
/// As in production, a resuming client is notified if it has documents that are no longer results.
/// Production's clients find those documents with this filter; here, the client also receives their
/// departures.
struct ResultCount: Sendable {
  var count: Int
  var names: BloomFilter

  /// Creates the count of a set of names.
  init(_ names: some Collection<DocumentName>) {
    count = names.count
    self.names = BloomFilter(count: count)
    for name in names { self.names.insert(name) }
  }
}
