import DocumentModel
import EventLog
import Events
import Identity
import StorageEngine
import TestSupport

@testable import TriggerDelivery

/// A model of a dispatcher and its store, whose steps are ordered by a seed.
///
/// It uses the same value types as the service. The seed decides when writes and reads end, when
/// functions are deployed, and when the dispatcher crashes and loses what it had not written.
/// Handlers succeed, fail, crash their worker or find no worker.
struct DispatchModel {
  /// A violated guarantee.
  struct ModelError: Error, CustomStringConvertible {
    var description: String
  }

  /// The faults that a run includes.
  struct Hardship {
    var crashes = false
    var failures = false
    /// True if deployments lack one of the functions now and then.
    var undeploys = false
    /// The number of documents that receive most of the events, more than their share of a window.
    var hotDocuments = 0
  }

  private struct Write {
    var batch: StorageBatch
    var ends: [FunctionBacklog.End] = []
    /// New deliveries by function.
    var new: [String: [Delivery]] = [:]
    var parked: (function: String, deliveries: [Delivery])?
    var events: [UInt64] = []
  }

  private static let functions = ["f", "g"]
  private static let database = DatabaseName(project: "demo")
  private static let start = Timestamp(microseconds: 1_800_000_000_000_000)
  private static let limits = DispatchLimits(concurrentMax: 4)

  private let hardship: Hardship
  private let storage = MemoryStorage()
  private let store: DeliveryStore
  private var generator: SeededGenerator
  private var now = Self.start
  private var dispatch: DispatchState
  private var running: [Delivery] = []
  private var writes: [Write] = []
  private var reads: [(DeliveryStore.LoadRequest, DeliveryStore.Loaded)] = []
  private var lastEvent: UInt64 = 0
  private var expanded: UInt64 = 0
  private var expanding = false
  /// The number of runs of each delivery; `succeeded` has the recorded successes.
  private var runs: [DeliveryID: Int] = [:]
  private var succeeded: Set<DeliveryID> = []
  /// The deliveries whose handler succeeded, whether or not that was stored.
  private var ended: Set<DeliveryID> = []
  private var events: [UInt64: String] = [:]
  private var failuresLeft: [DeliveryID: Int] = [:]

  init(seed: UInt64, hardship: Hardship) {
    generator = SeededGenerator(seed: seed)
    self.hardship = hardship
    store = DeliveryStore(storage: storage)
    dispatch = Self.dispatch(hardship)
  }

  private static func dispatch(_ hardship: Hardship) -> DispatchState {
    // Without hot documents, the bytes limit a window.
    let heldBytesMax = hardship.hotDocuments > 0 ? 1 << 17 : 4096
    return DispatchState(heldBytesMax: heldBytesMax, startsByItself: true)
  }

  /// Plays `steps` steps, then lets everything finish; throws a finding.
  mutating func play(steps: Int) async throws {
    try await begin()
    for _ in 0..<steps { try await step() }
    try await finish()
  }

  /// Begins a life of the dispatcher with what storage has.
  private mutating func begin() async throws {
    deploy(Self.functions)
    dispatch.resume(try await store.summaries(), now: now)
  }

  // MARK: Steps

  private mutating func step() async throws {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<12: try await publish()
    case 12..<22: try await expand()
    case 22..<48: try await look()
    case 48..<70: end()
    case 70..<88: try await write()
    case 88..<95: read()
    case 95..<98:
      now = now.advanced(by: .milliseconds(Int.random(in: 1...400, using: &generator)))
    case 98 where hardship.undeploys:
      deploy(Self.functions.filter { _ in Bool.random(using: &generator) })
    case 99 where hardship.crashes && Int.random(in: 0..<20, using: &generator) == 0:
      try await crash()
    default: break
    }
  }

  private mutating func deploy(_ functions: [String]) {
    let all = Dictionary(uniqueKeysWithValues: functions.map { ($0, Self.limits) })
    _ = dispatch.deploy(all, now: now, keptFor: .seconds(86_400))
  }

  private mutating func publish() async throws {
    guard lastEvent < expanded + 50 else { return }
    let isHot = hardship.hotDocuments > 0 && Int.random(in: 0..<10, using: &generator) < 8
    let documents = isHot ? 0..<hardship.hotDocuments : 0..<12
    let document = "things/\(Int.random(in: documents, using: &generator))"
    let name = DocumentName(
      database: Self.database,
      path: ResourcePath(slashSeparated: document)
    )
    let after = FirestoreDocument(name: name, fields: [:], createTime: now, updateTime: now)
    var batch = StorageBatch()
    CommitLog.append(
      [DocumentChange(name: name, before: nil, after: after)],
      commitTime: now,
      database: Self.database,
      auth: .admin,
      to: &batch
    )
    lastEvent = try await storage.commit(batch)
    events[lastEvent] = document
  }

  /// Adds the deliveries of the next events.
  private mutating func expand() async throws {
    guard !expanding else { return }
    let sequences = events.keys.filter { $0 > expanded }.sorted().prefix(3)
    guard !sequences.isEmpty else { return }
    var write = Write(batch: StorageBatch(), events: Array(sequences))
    var new: [String: [DeliveryStore.Candidate]] = [:]
    for sequence in sequences {
      guard let event = try await store.event(at: EventPlace(sequence: sequence, index: 0)) else {
        throw ModelError(description: "event \(sequence) is lost")
      }
      for function in Self.functions {
        let id = DeliveryID(sequence: sequence, changeIndex: 0, function: function)
        let delivery = Delivery(id: id, event: event)
        DeliveryStore.insert(delivery, into: &write.batch)
        new[function, default: []].append(
          DeliveryStore.Candidate(delivery: delivery, event: event, bytes: 100)
        )
      }
    }
    for (function, candidates) in new {
      dispatch.add(candidates, of: function)
      write.new[function] = candidates.map(\.delivery)
    }
    expanding = true
    writes.append(write)
  }

  private mutating func look() async throws {
    let work = dispatch.look(now: now)
    for start in work.starts { try begin(start) }
    for request in work.loads { reads.append((request, try await store.load(request))) }
  }

  private mutating func begin(_ start: DispatchState.Start) throws {
    let delivery = start.delivery
    guard start.event != nil else {
      throw ModelError(description: "\(delivery.id) has no event")
    }
    let others = running.filter { $0.lane == delivery.lane }
    guard others.isEmpty else {
      throw ModelError(description: "\(delivery.id) runs beside \(others[0].id) of its lane")
    }
    for (sequence, document) in events
    where sequence < delivery.id.sequence && document == delivery.subject {
      let earlier = DeliveryID(sequence: sequence, changeIndex: 0, function: delivery.id.function)
      guard ended.contains(earlier) else {
        throw ModelError(description: "\(delivery.id) runs before \(earlier) of its lane")
      }
    }
    guard hardship.crashes || !succeeded.contains(delivery.id) else {
      throw ModelError(description: "\(delivery.id) had succeeded and runs again")
    }
    runs[delivery.id, default: 0] += 1
    running.append(delivery)
  }

  /// Ends one of the runs.
  private mutating func end() {
    guard !running.isEmpty else { return }
    let delivery = running.remove(at: Int.random(in: running.indices, using: &generator))
    let outcome = hardship.failures ? Int.random(in: 0..<10, using: &generator) : 9
    let id = delivery.id
    switch outcome {
    case 0: dispatch.change(id.function) { $0.release(id.place, asCrashCandidate: true) }
    case 1:
      let now = now
      _ = dispatch.change(id.function) { backlog in
        backlog.notStarted(id.place, now: now) { _ in .milliseconds(100) }
      }
    case 2 where failuresLeft[id] != 0, 3 where failuresLeft[id] != 0:
      failuresLeft[id] = (failuresLeft[id] ?? 3) - 1
      var new = delivery
      new.attempts += 1
      new.postpone(to: now.advanced(by: .milliseconds(150)), "no", at: now)
      finish(new)
    default:
      var new = delivery
      new.attempts += 1
      new.end(.succeeded, nil, now)
      ended.insert(id)
      finish(new)
    }
  }

  private mutating func finish(_ new: Delivery) {
    let end = dispatch.change(new.id.function) { backlog in
      backlog.workerResponded()
      return backlog.finish(new)
    }
    guard let end else { return }
    var batch = StorageBatch()
    let hasLaneRows = dispatch.backlogs[new.id.function]?.hasLaneRows ?? true
    DeliveryStore.update(from: end.old, to: end.new, hasLaneRows: hasLaneRows, in: &batch)
    for other in end.parked { DeliveryStore.park(other, in: &batch) }
    writes.append(Write(batch: batch, ends: [end]))
  }

  /// Writes the oldest change.
  private mutating func write() async throws {
    guard !writes.isEmpty else { return }
    let write = writes.removeFirst()
    try await storage.commit(write.batch)
    if let last = write.events.last {
      expanding = false
      expanded = last
    }
    for (function, deliveries) in write.new {
      dispatch.change(function) { $0.inserted(deliveries) }
    }
    for end in write.ends {
      if end.new.state == .succeeded { succeeded.insert(end.new.id) }
      dispatch.change(end.old.id.function) { $0.saved(end) }
    }
    if let parked = write.parked {
      dispatch.change(parked.function) { $0.endParking(parked.deliveries) }
    }
  }

  /// Applies one of the reads, however old.
  private mutating func read() {
    guard !reads.isEmpty else { return }
    let (request, loaded) = reads.remove(at: Int.random(in: reads.indices, using: &generator))
    let parked = dispatch.loaded(request, loaded)
    guard !parked.isEmpty else { return }
    var batch = StorageBatch()
    for delivery in parked { DeliveryStore.park(delivery, in: &batch) }
    writes.append(Write(batch: batch, parked: (request.function, parked)))
  }

  /// Crashes the dispatcher, which loses all unwritten changes, and begins another life.
  private mutating func crash() async throws {
    dispatch = Self.dispatch(hardship)
    (running, writes, reads, expanding) = ([], [], [], false)
    try await begin()
  }

  // MARK: Completion

  /// Runs until nothing is pending; throws if that never happens.
  private mutating func finish() async throws {
    deploy(Self.functions)
    for round in 0... {
      while !writes.isEmpty { try await write() }
      while !reads.isEmpty { read() }
      try await expand()
      try await look()
      while !running.isEmpty { end() }
      now = now.advanced(by: .milliseconds(200))
      let isEmpty = try await storage.read { try DeliveryStore.functionsPending(in: $0).isEmpty }
      if isEmpty, expanded == lastEvent { break }
      guard round < 20_000 else {
        let left = try await store.list(
          states: [.pending],
          function: nil,
          limit: 5,
          scanMax: .max
        ) { _ in true }
        throw ModelError(description: "pending for ever: \(left.map { "\($0.id) \($0.subject)" })")
      }
    }
    for sequence in events.keys {
      for function in Self.functions {
        let id = DeliveryID(sequence: sequence, changeIndex: 0, function: function)
        guard try await store.delivery(id)?.state == .succeeded else {
          throw ModelError(description: "\(id) is lost")
        }
        let isCalm = !hardship.crashes && !hardship.failures
        guard !isCalm || runs[id] == 1 else {
          throw ModelError(description: "\(id) ran \(runs[id] ?? 0) times although nothing failed")
        }
      }
    }
    for keyspace in [DeliveryStore.due, DeliveryStore.lanes] {
      guard try await store.count(keyspace) == 0 else {
        throw ModelError(description: "rows are left in \(keyspace.name)")
      }
    }
  }
}
