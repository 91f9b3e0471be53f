import DocumentModel
import Identity
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

/// A client with listeners that maintains its cache as the mobile SDKs do.
final class ListeningClient: Sendable {
  /// A snapshot as shown to a target's listener.
  struct Shown {
    var target: ListenTarget
    var time: Timestamp
    var documents: StoreGame.Model
  }

  fileprivate struct Target {
    var target: ListenTarget
    var documents: StoreGame.Model = [:]
    var token: [UInt8] = []
    var isCurrent = false
    /// The number of unconfirmed additions.
    ///
    /// Events before a confirmation belong to an earlier addition.
    var pending = 0
  }

  fileprivate struct State {
    var targets: [Int32: Target] = [:]
    var session: ListenSession?
    var nextID: Int32 = 2
    var pendingRemovals: [Int32: Int] = [:]
    var lastTime = Timestamp(microseconds: 0)
    var shown: [Shown] = []
    var faults: [String] = []
  }

  let isPaused = Mutex(false)
  private let database: DatabaseName
  private let isSlow: Bool
  private let state = Mutex(State())
  private let tasks = Mutex<[Task<Void, Never>]>([])

  init(database: DatabaseName, isSlow: Bool) {
    self.database = database
    self.isSlow = isSlow
  }

  // MARK: Client actions

  /// Opens a stream with all targets, each resuming from its last position.
  func resume(on store: DocumentDatabase) async {
    let session = store.openListener(
      database: database,
      auth: .admin,
      configuration: isSlow
        ? .init(waitingBytesMax: 2000, waitingCommitsMax: 3, resultBytesMax: 300)
        : .init()
    )
    let requests = state.withLock { state in
      state.session = session
      state.lastTime = Timestamp(microseconds: 0)
      state.pendingRemovals = [:]
      return state.targets.map { id, target in
        state.targets[id]?.isCurrent = false
        state.targets[id]?.pending = 1
        return (id, Self.request(target))
      }
    }
    tasks.withLock { tasks in
      tasks = [
        Task { await self.take(session) }
      ]
    }
    for (id, request) in requests { await session.add(request, id: id) }
  }

  private static func request(_ target: Target) -> ListenRequest {
    guard !target.token.isEmpty else { return ListenRequest(target.target) }
    return ListenRequest(
      target.target,
      resumePoint: .token(target.token),
      expectedCount: target.documents.count
    )
  }

  /// Closes the stream; the client keeps its cache.
  func disconnect() async {
    state.withLock { $0.session }?.close()
    let running = tasks.withLock { $0 }
    for task in running { task.cancel() }
    for task in running { await task.value }
    state.withLock { $0.session = nil }
  }

  func listen(to target: ListenTarget) async {
    let (session, id) = state.withLock { state in
      let id = state.nextID
      state.nextID += 2
      state.targets[id] = Target(target: target, pending: 1)
      return (state.session, id)
    }
    await session?.add(ListenRequest(target), id: id)
  }

  func removeTarget(_ number: Int) async {
    let (session, id) = state.withLock { state -> (ListenSession?, Int32?) in
      guard let id = Self.pick(number, state.targets.keys) else { return (nil, nil) }
      state.targets[id] = nil
      state.pendingRemovals[id, default: 0] += 1
      return (state.session, id)
    }
    if let id { await session?.remove(id) }
  }

  /// Loses one document of a target, as a damaged cache does.
  func forgetOne(_ number: Int) {
    state.withLock { state in
      guard let id = Self.pick(number, state.targets.keys),
        let name = state.targets[id]?.documents.keys.min()
      else { return }
      state.targets[id]?.documents[name] = nil
    }
  }

  private static func pick(_ number: Int, _ ids: some Collection<Int32>) -> Int32? {
    ids.isEmpty ? nil : ids.sorted()[number % ids.count]
  }

  // MARK: Received events

  private func take(_ session: ListenSession) async {
    while !Task.isCancelled, let events = await session.next() {
      for event in events { await take(event, session) }
      // The game decides how long a client pauses.
      await eventually("the client goes on", within: .seconds(3600)) { !isPaused.withLock { $0 } }
    }
  }

  private func take(_ event: ListenEvent, _ session: ListenSession) async {
    let again = state.withLock { $0.take(event) }
    guard let (id, request) = again else { return }
    await session.remove(id)
    await session.add(request, id: id)
  }

  /// Waits until a snapshot at or after `time` covers all targets; false if that takes too long.
  func catchUp(with time: Timestamp, _ remind: () async -> Void) async -> Bool {
    await eventually("a listener catches up") {
      if isCurrent(at: time) { return true }
      await remind()
      return false
    }
    return isCurrent(at: time)
  }

  private func isCurrent(at time: Timestamp) -> Bool {
    state.withLock { state in
      state.targets.isEmpty
        || state.lastTime >= time
          && state.targets.values.allSatisfy { $0.isCurrent && $0.pending == 0 }
    }
  }

  func takeShown() -> [Shown] {
    state.withLock { state in
      defer { state.shown = [] }
      return state.shown
    }
  }

  func takeFaults() -> [String] {
    state.withLock { state in
      defer { state.faults = [] }
      return state.faults
    }
  }

  var summary: String {
    state.withLock { state in
      "\(state.lastTime) "
        + state.targets.map { id, target in
          "\(id): \(target.isCurrent) \(target.pending) \(target.target)"
        }.joined(separator: "; ")
    }
  }
}

extension ListeningClient.State {
  /// Processes an event; returns a target that must be listened to again.
  fileprivate mutating func take(_ event: ListenEvent) -> (Int32, ListenRequest)? {
    switch event {
    case .added(let id):
      if pendingRemovals[id] != nil { return nil }
      if targets[id] == nil || targets[id]?.pending == 0 { faults.append("\(id) was not added") }
      targets[id]?.pending -= 1
    case .removed(let id, let cause):
      if let cause {
        faults.append("\(id) was refused: \(cause)")
        targets[id] = nil
      } else if let count = pendingRemovals[id] {
        pendingRemovals[id] = count > 1 ? count - 1 : nil
      } else {
        faults.append("\(id) was not removed")
      }
    case .reset(let id):
      change(id) {
        $0.documents = [:]
        $0.isCurrent = false
      }
    case .current(let id, _, let token):
      change(id) {
        $0.isCurrent = true
        $0.token = token
      }
    case .document(let document, let members, let former):
      for id in members { change(id) { $0.documents[document.document.name] = document.document } }
      for id in former { change(id) { $0.documents[document.document.name] = nil } }
    case .deleted(let name, let ids, _), .departed(let name, let ids, _):
      for id in ids { change(id) { $0.documents[name] = nil } }
    case .filter(let id, let count, let names):
      guard let target = targets[id], isActive(id), target.documents.count != count else {
        return nil
      }
      let kept = target.documents.filter { name, _ in
        var with = names
        with.insert(name)
        return with == names
      }
      if kept.count == count {
        targets[id]?.documents = kept
        return nil
      }
      pendingRemovals[id, default: 0] += 1
      targets[id] = .init(target: target.target, pending: 1)
      return (id, ListenRequest(target.target))
    case .snapshot(let time, let token):
      if time < lastTime { faults.append("\(time) comes after \(lastTime)") }
      lastTime = time
      if !token.isEmpty { for id in targets.keys where isActive(id) { targets[id]?.token = token } }
      for (id, target) in targets where target.isCurrent && isActive(id) {
        shown.append(.init(target: target.target, time: time, documents: target.documents))
      }
    }
    return nil
  }

  private func isActive(_ id: Int32) -> Bool {
    targets[id]?.pending == 0 && pendingRemovals[id] == nil
  }

  private mutating func change(_ id: Int32, _ body: (inout ListeningClient.Target) -> Void) {
    guard isActive(id), var target = targets[id] else { return }
    body(&target)
    targets[id] = target
  }
}
