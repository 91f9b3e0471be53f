import LibC
package import Logging
import NIOCore
import Synchronization

/// The connections of several ports together, limited in number.
///
/// Beyond the limit, the connection that has been idle longest is closed for a new one. While every
/// connection has a request in progress, new connections wait in the system's backlog. Clients that
/// merely hold connections open therefore cannot keep others out.
package final class ConnectionRoster: Sendable {
  private struct Entry {
    let channel: any Channel
    /// The time since which no request has been in progress; nil during a request.
    var idleSince: NIODeadline?
    /// True if requests may be in progress that were not reported to the roster.
    var isMultiplexed = false
  }

  private struct State {
    /// The number of accepted connections that are neither closed nor being closed to make room.
    var count = 0
    var entries: [ObjectIdentifier: Entry] = [:]
    var closing: Set<ObjectIdentifier> = []
    /// The listening sockets, which resume reading once there is room.
    var listeners: [any Channel] = []
    var isFull = false
    var notifiedTime: NIODeadline?
  }

  /// The maximum number of connections.
  package let max: Int
  private let idleMin: TimeAmount
  private let logger: Logger
  private let state = Mutex(State())

  /// Creates a roster of at most `max` connections.
  ///
  /// `idleMin` is the time that a connection has to send its first or next request before it may be
  /// closed to make room.
  package init(
    max: Int = ConnectionRoster.suitableMax(),
    idleMin: Duration = .milliseconds(250),
    logger: Logger
  ) {
    self.max = max
    self.idleMin = TimeAmount(idleMin)
    self.logger = logger
  }

  /// Returns a suitable maximum number of connections for the process's limit on open files.
  ///
  /// Half of the files are left for connections to workers, because each call may need one, and
  /// some for other files.
  package static func suitableMax() -> Int {
    var limit = rlimit()
    #if canImport(Glibc)
      let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    #else
      let isKnown = getrlimit(RLIMIT_NOFILE, &limit) == 0
    #endif
    let files = isKnown ? Int(clamping: limit.rlim_cur) : 1024
    return min(most, Swift.max(least, (files - filesKept) / 2))
  }

  private static let most = 8192
  private static let least = 32
  private static let filesKept = 256

  package var count: Int { state.withLock { $0.count } }

  // MARK: - Connections

  /// Counts a connection that is being accepted.
  func accepted() { state.withLock { $0.count += 1 } }

  /// Adds an accepted connection, which is idle until its first request.
  func enter(_ channel: any Channel) {
    state.withLock {
      $0.entries[ObjectIdentifier(channel)] = Entry(channel: channel, idleSince: .now())
    }
    channel.closeFuture.whenComplete { _ in self.leave(channel) }
    makeRoom(on: channel.eventLoop)
  }

  /// Marks a connection whose requests are not reported individually.
  func noteMultiplexed(_ channel: any Channel) {
    state.withLock { $0.entries[ObjectIdentifier(channel)]?.isMultiplexed = true }
  }

  /// Records whether a request of the connection is in progress.
  func note(_ channel: any Channel, isBusy: Bool) {
    let waiting = state.withLock { state -> [any Channel] in
      state.entries[ObjectIdentifier(channel)]?.idleSince = isBusy ? nil : .now()
      return isBusy ? [] : Self.listenersToResume(&state)
    }
    for listener in waiting { listener.read() }
  }

  private func leave(_ channel: any Channel) {
    let waiting = state.withLock { state -> [any Channel] in
      let key = ObjectIdentifier(channel)
      state.entries[key] = nil
      if state.closing.remove(key) == nil { state.count -= 1 }
      return Self.listenersToResume(&state)
    }
    for listener in waiting { listener.read() }
  }

  private static func listenersToResume(_ state: inout State) -> [any Channel] {
    guard state.isFull else { return [] }
    state.isFull = false
    return state.listeners
  }

  /// Closes all connections, which ends their requests as if the clients had disconnected.
  ///
  /// It may be called on any thread and needs no task, so it also works while tasks occupy every
  /// thread.
  package func closeAll() {
    for channel in state.withLock({ $0.entries.values.map(\.channel) }) {
      channel.close(promise: nil)
    }
  }

  // MARK: - Capacity

  /// Adds a listening socket; it is removed when it closes.
  func enter(listener: any Channel) {
    state.withLock { $0.listeners.append(listener) }
    listener.closeFuture.whenComplete { _ in
      self.state.withLock { state in state.listeners.removeAll { $0 === listener } }
    }
  }

  /// Returns true if a listening socket may accept another connection.
  ///
  /// The socket asks before a connection has arrived.
  func hasRoom() -> Bool {
    let listeners = state.withLock { state -> [any Channel]? in
      if state.count < max || longestIdle(state.entries) != nil { return nil }
      state.isFull = true
      return state.listeners
    }
    guard let listeners else { return true }
    warn("There are too many connections, all with requests: new ones wait")
    // By then, connections that have been idle for too short a time can be closed.
    listeners.first?.eventLoop.scheduleTask(in: idleMin) { self.reopen() }
    return false
  }

  private func reopen() {
    for listener in state.withLock({ Self.listenersToResume(&$0) }) { listener.read() }
  }

  /// Closes the connection that has been idle longest, if there are too many connections.
  ///
  /// If none has been idle long enough, it tries again after `idleMin`.
  private func makeRoom(on eventLoop: any EventLoop) {
    let (victim, isLater) = state.withLock { state -> ((any Channel)?, Bool) in
      guard state.count > max else { return (nil, false) }
      guard let victim = longestIdle(state.entries) else { return (nil, true) }
      state.count -= 1
      state.closing.insert(victim)
      return (state.entries.removeValue(forKey: victim)?.channel, false)
    }
    if isLater { eventLoop.scheduleTask(in: idleMin) { self.makeRoom(on: eventLoop) } }
    guard let victim else { return }
    warn("There are too many connections: those idle longest are closed")
    victim.close(promise: nil)
  }

  private func warn(_ text: Logger.Message) {
    let isNews = state.withLock { state in
      let now = NIODeadline.now()
      guard state.notifiedTime.map({ now - $0 > Self.warningInterval }) ?? true else {
        return false
      }
      state.notifiedTime = now
      return true
    }
    // One of the constant sentences of the callers.
    if isNews { logger.warning(text, metadata: ["connections.max": "\(max)"]) }
  }

  private func longestIdle(_ entries: [ObjectIdentifier: Entry]) -> ObjectIdentifier? {
    let latest = NIODeadline.now() - idleMin
    let idle = entries.compactMap { key, entry in
      entry.idleSince.flatMap { $0 <= latest ? (key, $0, entry.isMultiplexed) : nil }
    }
    return idle.min { first, second in
      // A multiplexed connection that seems idle may have requests in progress, so it is closed
      // last.
      first.2 == second.2 ? first.1 < second.1 : !first.2
    }?.0
  }

  private static let warningInterval = TimeAmount.seconds(30)
}
