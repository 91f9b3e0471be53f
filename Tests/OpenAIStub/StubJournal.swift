/// The latest requests, in order.
package struct StubJournal: Sendable, Hashable, Encodable {
  /// The requests that are still remembered.
  package private(set) var entries: [Entry] = []
  /// How many older ones are not.
  package private(set) var dropped = 0
  private var bytes = 0

  // A test looks at a handful; the largest request has a few megabytes.
  private static let entriesMax = 1000
  private static let bytesMax = 16 << 20

  /// One request and what became of it.
  package struct Entry: Sendable, Hashable, Encodable {
    /// Counts all requests of a route since the last reset, from 1.
    package var call: Int
    package var route: StubRoute
    /// The body; null where it was none or no JSON.
    package var request: JSON
    /// The answer's status; 0 where there was none.
    package var status: Int
    /// Whether a fault was planned for the call.
    package var isFault: Bool
    /// Whether the client left before the answer, which a fault held back.
    package var hasClientLeft = false
    fileprivate var bytes: Int

    enum CodingKeys: CodingKey {
      case call, route, request, status, isFault, hasClientLeft
    }

    init(call: Int, route: StubRoute, request: JSON, bytes: Int, status: Int, isFault: Bool) {
      self.call = call
      self.route = route
      self.request = request
      self.bytes = bytes
      self.status = status
      self.isFault = isFault
    }
  }

  enum CodingKeys: CodingKey {
    case entries, dropped
  }

  mutating func clientLeft(_ call: Int, _ route: StubRoute) {
    guard let index = entries.lastIndex(where: { $0.call == call && $0.route == route }) else {
      return
    }
    entries[index].hasClientLeft = true
  }

  mutating func add(_ entry: Entry) {
    entries.append(entry)
    bytes += entry.bytes
    while entries.count > Self.entriesMax || bytes > Self.bytesMax, !entries.isEmpty {
      bytes -= entries.removeFirst().bytes
      dropped += 1
    }
  }
}
