import Synchronization

/// A client that stays connected.
protocol ConnectedClient: AnyObject, Sendable {
  /// Looks for what has become due; called about every `ClientRoster.tickInterval`.
  func tick(atMilliseconds now: Int64)
  /// Ends the connection.
  func disconnect()
}

/// The clients that stay connected: sockets, long polling and event streams.
final class ClientRoster: Sendable {
  /// The time between two looks at all clients.
  static let tickInterval = Duration.seconds(5)

  private struct Entry {
    weak var client: (any ConnectedClient)?
  }

  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  var count: Int { entries.withLock { $0.count } }

  func enter(_ client: any ConnectedClient) {
    entries.withLock { $0[ObjectIdentifier(client)] = Entry(client: client) }
  }

  func leave(_ client: any ConnectedClient) {
    entries.withLock { $0[ObjectIdentifier(client)] = nil }
  }

  func tick(atMilliseconds now: Int64) {
    for client in clients { client.tick(atMilliseconds: now) }
  }

  func disconnectAll() {
    for client in clients { client.disconnect() }
  }

  private var clients: [any ConnectedClient] {
    entries.withLock { $0.values.compactMap(\.client) }
  }
}

/// A time after which a client counts as silent, in looks of the roster.
struct Silence: Sendable {
  private let ticksMax: Int
  private var ticks = 0

  init(_ duration: Duration) {
    ticksMax = Int(duration / ClientRoster.tickInterval)
  }

  mutating func end() { ticks = 0 }

  /// Counts a look; returns true once the silence has lasted.
  mutating func tick() -> Bool {
    ticks += 1
    return ticks > ticksMax
  }
}
