package import Logging
import NIOCore
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The connections of several ports together, of which there is a bound.
///
/// Past the bound the connection that has been idle longest gives way to the new one; while every
/// connection has a request, new ones wait in the system's backlog. So nobody who merely holds
/// connections open keeps others out.
package final class ConnectionRoster: Sendable {
  private struct Entry {
    let channel: any Channel
    /// Since when no request is under way; nil while one is.
    var idleSince: NIODeadline?
    /// Whether requests may be under way although none is noted.
    var isMultiplexed = false
  }

  private struct State {
    /// Connections that are accepted and not closed, those being closed left out.
    var count = 0
    var entries: [ObjectIdentifier: Entry] = [:]
    var closing: Set<ObjectIdentifier> = []
    /// The listening sockets, which read again once there is room.
    var doors: [any Channel] = []
    var isFull = false
    var toldTime: NIODeadline?
  }

  /// How many connections there may be.
  package let max: Int
  private let idleMin: TimeAmount
  private let logger: Logger
  private let state = Mutex(State())

  /// A roster of at most `max` connections.
  ///
  /// `idleMin` is the time in which a new connection may send its first request, and a used one its
  /// next, before it may have to give way.
  package init(
    max: Int = ConnectionRoster.suitableMax(),
    idleMin: Duration = .milliseconds(250),
    logger: Logger
  ) {
    self.max = max
    self.idleMin = TimeAmount(idleMin)
    self.logger = logger
  }

  /// How many connections suit the process's limit of open files.
  ///
  /// Half are left for the connections to workers, of which each call may need one, and some for
  /// files.
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

  /// How many connections there are.
  package var count: Int { state.withLock { $0.count } }

  // MARK: - Connections

  /// Counts a connection that is being accepted.
  func accepted() { state.withLock { $0.count += 1 } }

  /// Notes an accepted connection, which is idle until its first request.
  func enter(_ channel: any Channel) {
    state.withLock {
      $0.entries[ObjectIdentifier(channel)] = Entry(channel: channel, idleSince: .now())
    }
    channel.closeFuture.whenComplete { _ in self.leave(channel) }
    makeRoom(on: channel.eventLoop)
  }

  /// Notes that requests of the connection are not noted one by one.
  func noteMultiplexed(_ channel: any Channel) {
    state.withLock { $0.entries[ObjectIdentifier(channel)]?.isMultiplexed = true }
  }

  /// Notes whether a request of the connection is under way.
  func note(_ channel: any Channel, isBusy: Bool) {
    let waiting = state.withLock { state -> [any Channel] in
      state.entries[ObjectIdentifier(channel)]?.idleSince = isBusy ? nil : .now()
      return isBusy ? [] : Self.doorsToOpen(&state)
    }
    for door in waiting { door.read() }
  }

  private func leave(_ channel: any Channel) {
    let waiting = state.withLock { state -> [any Channel] in
      let key = ObjectIdentifier(channel)
      state.entries[key] = nil
      if state.closing.remove(key) == nil { state.count -= 1 }
      return Self.doorsToOpen(&state)
    }
    for door in waiting { door.read() }
  }

  private static func doorsToOpen(_ state: inout State) -> [any Channel] {
    guard state.isFull else { return [] }
    state.isFull = false
    return state.doors
  }

  /// Closes all connections, which ends their requests as when clients leave.
  ///
  /// May be called on any thread and needs no task, so it also works while tasks occupy every thread.
  package func closeAll() {
    for channel in state.withLock({ $0.entries.values.map(\.channel) }) {
      channel.close(promise: nil)
    }
  }

  // MARK: - Room

  /// Notes a listening socket, until it closes.
  func enter(door: any Channel) {
    state.withLock { $0.doors.append(door) }
    door.closeFuture.whenComplete { _ in
      self.state.withLock { state in state.doors.removeAll { $0 === door } }
    }
  }

  /// Whether a door may accept one connection more, which it asks before there is one.
  func hasRoom() -> Bool {
    let doors = state.withLock { state -> [any Channel]? in
      if state.count < max || longestIdle(state.entries) != nil { return nil }
      state.isFull = true
      return state.doors
    }
    guard let doors else { return true }
    tell("There are too many connections, all with requests: new ones wait")
    // What has been idle for too short a time is not by then.
    doors.first?.eventLoop.scheduleTask(in: idleMin) { self.reopen() }
    return false
  }

  private func reopen() {
    for door in state.withLock({ Self.doorsToOpen(&$0) }) { door.read() }
  }

  /// Closes the connection that has been idle longest, now or once one is, if there are too many.
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
    tell("There are too many connections: those idle longest are closed")
    victim.close(promise: nil)
  }

  private func tell(_ text: Logger.Message) {
    let isNews = state.withLock { state in
      let now = NIODeadline.now()
      guard state.toldTime.map({ now - $0 > Self.tellingInterval }) ?? true else { return false }
      state.toldTime = now
      return true
    }
    if isNews { logger.warning(text, metadata: ["connections.max": "\(max)"]) }
  }

  private func longestIdle(_ entries: [ObjectIdentifier: Entry]) -> ObjectIdentifier? {
    let latest = NIODeadline.now() - idleMin
    let idle = entries.compactMap { key, entry in
      entry.idleSince.flatMap { $0 <= latest ? (key, $0, entry.isMultiplexed) : nil }
    }
    return idle.min { first, second in
      // What looks idle may have requests under way only where they are not noted one by one.
      first.2 == second.2 ? first.1 < second.1 : !first.2
    }?.0
  }

  private static let tellingInterval = TimeAmount.seconds(30)
}
