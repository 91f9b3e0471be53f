/// A record of the latest requests, in order.
package struct StubJournal: Sendable, Hashable, Encodable {
  /// The requests that are still kept.
  package private(set) var entries: [Entry] = []
  /// The number of older requests that were dropped.
  package private(set) var dropped = 0
  private var bytes = 0

  // A test inspects only a few entries. The largest request has a few megabytes.
  private static let entriesMax = 1000
  private static let bytesMax = 16 << 20

  /// A request and its outcome.
  package struct Entry: Sendable, Hashable, Encodable {
    /// The number of this call among all calls of its route since the last reset, starting at 1.
    package var call: Int
    package var route: StubRoute
    /// The request body; null if it was missing or not JSON.
    package var request: JSON
    /// The response's status; 0 if no response was sent.
    package var status: Int
    /// True if a fault was planned for the call.
    package var isFault: Bool
    /// True if the client disconnected before a delayed response.
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
