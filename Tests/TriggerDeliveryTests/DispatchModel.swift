import DocumentModel
import EventLog
import Events
import Identity
import StorageEngine
import TestSupport

@testable import TriggerDelivery

/// A model of two dispatchers over one store, whose steps are ordered by a seed.
///
/// It uses the same value types as the service. The seed decides when writes and reads end, when
/// claims expire, and when dispatchers crash and lose what they had not written. Handlers succeed,
/// fail, crash their worker or find no worker.
struct DispatchModel {
  /// A violated guarantee.
  struct ModelError: Error, CustomStringConvertible {
    var description: String
  }

  /// The faults that a run includes.
  struct Hardship {
    /// True if a single dispatcher owns the store and starts deliveries before they are written.
    var isAlone = false
    var crashes = false
    var expiries = false
    var failures = false
    /// The number of documents that receive most of the events, more than their share of a window.
    var hotDocuments = 0
  }

  private struct Write {
    /// The claims that the node held when it decided on the change; nil if one was missing.
    var claims: [VersionExpectation]?
    var batch: StorageBatch
    var ends: [FunctionBacklog.End] = []
    /// New deliveries by function; `left` names functions with deliveries that remain in storage.
    var new: [String: [DeliveryStore.Candidate]] = [:]
    var left: [String] = []
    var parked: (function: String, deliveries: [Delivery])?
    var events: [UInt64] = []
  }

  private struct Node {
    var id: Int
    var dispatch: DispatchState
    var claims: [Shard: VersionExpectation] = [:]
    var running: [Delivery] = []
    var writes: [Write] = []
    var reads: [(DeliveryStore.LoadRequest, DeliveryStore.Loaded)] = []
  }

  private static let functions = ["f", "g"]
  private static let database = DatabaseName(project: "demo")
  private static let start = Timestamp(microseconds: 1_800_000_000_000_000)

  private let hardship: Hardship
  private let storage = MemoryStorage()
  private let store: DeliveryStore
  private let limits = DispatchLimits(concurrentMax: 4)
  private var generator: SeededGenerator
  private var now = Self.start
  private var nodes: [Node] = []
  private var nodesMade = 0
  private var lastEvent: UInt64 = 0
  private var expanded: UInt64 = 0
  private var expanding = false
  /// The number of runs of each delivery; `succeeded` has the recorded successes.
  private var runs: [DeliveryID: Int] = [:]
  private var succeeded: Set<DeliveryID> = []
  private var order: [String: [UInt64]] = [:]
  /// The deliveries whose handler succeeded, whether or not that was stored.
  private var ended: Set<DeliveryID> = []
  private var events: [UInt64: String] = [:]
  private var failuresLeft: [DeliveryID: Int] = [:]

  init(seed: UInt64, hardship: Hardship) {
    generator = SeededGenerator(seed: seed)
    self.hardship = hardship
    store = DeliveryStore(storage: storage)
  }

  /// Plays `steps` steps, then lets everything finish; throws a finding.
  mutating func play(steps: Int) async throws {
    for _ in 0..<(hardship.isAlone ? 1 : 2) { try await join() }
    for _ in 0..<steps { try await step() }
    try await finish()
  }

  // MARK: Steps

  private mutating func step() async throws {
    let index = Int.random(in: nodes.indices, using: &generator)
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<12: try await publish()
    case 12..<22: try await expand(index)
    case 22..<48: try await look(index)
    case 48..<70: end(index)
    case 70..<88: try await write(index)
    case 88..<95: read(index)
    case 95..<98:
      now = now.advanced(by: .milliseconds(Int.random(in: 1...400, using: &generator)))
    case 98 where hardship.expiries: try await expire()
    case 99 where hardship.crashes && Int.random(in: 0..<20, using: &generator) == 0:
      try await crash(index)
    default: break
    }
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

  /// Gives the deliveries of the next events to a node that holds the expansion claim.
  private mutating func expand(_ index: Int) async throws {
    guard nodes[index].claims[.expansion] != nil, !expanding else { return }
    let sequences = events.keys.filter { $0 > expanded }.sorted().prefix(3)
    guard !sequences.isEmpty else { return }
    var write = Write(
      claims: claims(of: [.expansion], index),
      batch: StorageBatch(),
      events: Array(sequences)
    )
    var all: [Delivery] = []
    for sequence in sequences {
      guard let event = try await store.event(at: EventPlace(sequence: sequence, index: 0)) else {
        throw ModelError(description: "event \(sequence) is lost")
      }
      for function in Self.functions {
        let id = DeliveryID(sequence: sequence, changeIndex: 0, function: function)
        let delivery = Delivery(id: id, event: event)
        DeliveryStore.insert(delivery, into: &write.batch)
        if nodes[index].dispatch.shards.contains(Shard(of: delivery)) {
          write.new[function, default: []].append(
            DeliveryStore.Candidate(delivery: delivery, event: event, bytes: 100)
          )
        }
        all.append(delivery)
      }
    }
    ShardNotices.tell(all, by: "\(nodes[index].id)", in: &write.batch)
    if hardship.isAlone {
      for (function, candidates) in write.new
      where nodes[index].dispatch.add(candidates, of: function) { write.left.append(function) }
    }
    expanding = true
    nodes[index].writes.append(write)
  }

  private mutating func look(_ index: Int) async throws {
    let news = try await ShardNotices.take(
      for: nodes[index].claims,
      by: "\(nodes[index].id)",
      from: storage
    )
    for (function, count) in news {
      nodes[index].dispatch.change(function) { $0.takeNotice(of: count, now: now) }
    }
    let work = nodes[index].dispatch.look(now: now)
    for start in work.starts { try begin(start, on: index) }
    for request in work.loads {
      nodes[index].reads.append((request, try await store.load(request)))
    }
  }

  private mutating func begin(_ start: DispatchState.Start, on index: Int) throws {
    let delivery = start.delivery
    guard start.event != nil else {
      throw ModelError(description: "\(delivery.id) has no event")
    }
    let others = nodes[index].running.filter { $0.lane == delivery.lane }
    guard others.isEmpty else {
      throw ModelError(description: "\(delivery.id) runs beside \(others[0].id) of its lane")
    }
    // A live dispatcher whose claim expired may continue with the deliveries that it had.
    for (sequence, document) in events
    where !hardship.expiries && sequence < delivery.id.sequence && document == delivery.subject {
      let earlier = DeliveryID(sequence: sequence, changeIndex: 0, function: delivery.id.function)
      guard ended.contains(earlier) else {
        throw ModelError(description: "\(delivery.id) runs before \(earlier) of its lane")
      }
    }
    if !hardship.crashes, !hardship.expiries {
      guard !succeeded.contains(delivery.id) else {
        throw ModelError(description: "\(delivery.id) had succeeded and runs again")
      }
      let lane = "\(delivery.id.function) \(delivery.subject)"
      if let last = order[lane]?.last, last > delivery.id.sequence {
        throw ModelError(description: "\(delivery.id) runs after \(last) of its lane")
      }
      order[lane, default: []].append(delivery.id.sequence)
    }
    runs[delivery.id, default: 0] += 1
    nodes[index].running.append(delivery)
  }

  /// Ends one of a node's runs.
  private mutating func end(_ index: Int) {
    guard !nodes[index].running.isEmpty else { return }
    let place = Int.random(in: nodes[index].running.indices, using: &generator)
    let delivery = nodes[index].running.remove(at: place)
    let outcome = hardship.failures ? Int.random(in: 0..<10, using: &generator) : 9
    let id = delivery.id
    switch outcome {
    case 0:
      nodes[index].dispatch.change(id.function) { $0.release(id.place, asCrashCandidate: true) }
    case 1:
      let now = now
      _ = nodes[index].dispatch.change(id.function) { backlog in
        backlog.notStarted(id.place, now: now) { _ in .milliseconds(100) }
      }
    case 2 where failuresLeft[id] != 0, 3 where failuresLeft[id] != 0:
      failuresLeft[id] = (failuresLeft[id] ?? 3) - 1
      var new = delivery
      new.attempts += 1
      new.postpone(to: now.advanced(by: .milliseconds(150)), "no", at: now)
      finish(new, on: index)
    default:
      var new = delivery
      new.attempts += 1
      new.end(.succeeded, nil, now)
      ended.insert(id)
      finish(new, on: index)
    }
  }

  private mutating func finish(_ new: Delivery, on index: Int) {
    let end = nodes[index].dispatch.change(new.id.function) { backlog in
      backlog.workerResponded()
      return backlog.finish(new)
    }
    guard let end else { return }
    var batch = StorageBatch()
    let hasLaneRows = nodes[index].dispatch.backlogs[new.id.function]?.hasLaneRows ?? true
    DeliveryStore.update(from: end.old, to: end.new, hasLaneRows: hasLaneRows, in: &batch)
    for other in end.parked { DeliveryStore.park(other, in: &batch) }
    nodes[index].writes.append(
      Write(claims: claims(of: [Shard(of: new)], index), batch: batch, ends: [end])
    )
  }

  private func claims(of shards: Set<Shard>, _ index: Int) -> [VersionExpectation]? {
    let claims = shards.compactMap { nodes[index].claims[$0] }
    return claims.count == shards.count ? claims : nil
  }

  /// Writes a node's oldest change if its claims still hold.
  private mutating func write(_ index: Int) async throws {
    guard !nodes[index].writes.isEmpty else { return }
    let write = nodes[index].writes.removeFirst()
    var isWritten = false
    if let claims = write.claims {
      do {
        try await storage.commit(write.batch, expecting: claims)
        isWritten = true
      } catch let error as StorageError where error.kind == .conflict {
        // Another dispatcher owns the shard.
      }
    }
    if !write.events.isEmpty {
      expanding = false
      if isWritten, let last = write.events.last { expanded = last }
    }
    for function in write.left {
      let deliveries = (write.new[function] ?? []).map(\.delivery)
      nodes[index].dispatch.change(function) { $0.inserted(deliveries) }
    }
    for (function, candidates) in write.new where isWritten && !hardship.isAlone {
      nodes[index].dispatch.change(function) { $0.takeNotice(of: candidates.count, now: now) }
    }
    for end in write.ends {
      if isWritten, end.new.state == .succeeded { succeeded.insert(end.new.id) }
      nodes[index].dispatch.change(end.old.id.function) { backlog in
        if isWritten { backlog.saved(end) } else { backlog.refused(end) }
      }
    }
    if let parked = write.parked {
      nodes[index].dispatch.change(parked.function) { $0.endParking(parked.deliveries) }
    }
  }

  /// Applies one of a node's reads, however old.
  private mutating func read(_ index: Int) {
    guard !nodes[index].reads.isEmpty else { return }
    let place = Int.random(in: nodes[index].reads.indices, using: &generator)
    let (request, loaded) = nodes[index].reads.remove(at: place)
    let parked = nodes[index].dispatch.loaded(request, loaded)
    for (shard, deliveries) in Dictionary(grouping: parked, by: { Shard(of: $0) }) {
      var batch = StorageBatch()
      for delivery in deliveries { DeliveryStore.park(delivery, in: &batch) }
      let change = Write(
        claims: claims(of: [shard], index),
        batch: batch,
        parked: (request.function, deliveries)
      )
      nodes[index].writes.append(change)
    }
  }

  // MARK: Claims

  private mutating func makeNode() -> Node {
    nodesMade += 1
    // Without hot documents, the bytes limit a window.
    let heldBytesMax = hardship.hotDocuments > 0 ? 1 << 17 : 4096
    return Node(
      id: nodesMade,
      dispatch: DispatchState(heldBytesMax: heldBytesMax, startsByItself: true)
    )
  }

  /// Adds a dispatcher that takes every second shard; the first one takes all.
  private mutating func join() async throws {
    var node = makeNode()
    node.dispatch.update(
      limits: Dictionary(uniqueKeysWithValues: Self.functions.map { ($0, limits) })
    )
    nodes.append(node)
    for shard in Shard.all + [.expansion]
    where nodes.count == 1 || Int(shard.number) % 2 == nodes.count % 2 {
      try await give(shard, to: nodes.count - 1)
    }
  }

  /// Gives a shard to a dispatcher.
  ///
  /// The previous owner may learn of that only when its next write is refused.
  private mutating func give(_ shard: Shard, to index: Int) async throws {
    var batch = StorageBatch()
    batch.put(ClaimKeeper.shards, [shard.number], Array("\(nodes[index].id)".utf8))
    batch.deleteRange(ShardNotices.keyspace, from: [shard.number], to: [shard.number + 1])
    let version = try await storage.commit(batch)
    nodes[index].claims[shard] = VersionExpectation(
      ClaimKeeper.shards,
      [shard.number],
      version: version
    )
    if !hardship.expiries, !hardship.crashes {
      for other in nodes.indices where other != index { drop(shard, on: other) }
    }
    try await resume(index)
  }

  private mutating func drop(_ shard: Shard, on index: Int) {
    nodes[index].claims[shard] = nil
    nodes[index].dispatch.update(shards: ShardSet(nodes[index].claims.keys))
  }

  private mutating func resume(_ index: Int) async throws {
    let shards = ShardSet(nodes[index].claims.keys)
    nodes[index].dispatch.update(shards: shards)
    for (function, summary) in try await store.summaries(of: shards) {
      nodes[index].dispatch.change(function) { $0.resume(summary, now: now) }
    }
  }

  /// Passes a claim to another dispatcher, as if its owner had stopped sending heartbeats.
  private mutating func expire() async throws {
    let shard = (Shard.all + [.expansion]).randomElement(using: &generator) ?? .expansion
    let index = Int.random(in: nodes.indices, using: &generator)
    guard nodes[index].claims[shard] == nil else {
      // A dispatcher that has lost shards learns of it.
      return try await learn(index)
    }
    try await give(shard, to: index)
  }

  private mutating func learn(_ index: Int) async throws {
    let claims = nodes[index].claims
    let lost = try await storage.read { snapshot in
      try claims.filter { shard, claim in
        try snapshot.get(ClaimKeeper.shards, [shard.number])?.version != claim.version
      }
    }
    for shard in lost.keys { drop(shard, on: index) }
  }

  /// Crashes a dispatcher, which loses all unwritten changes.
  ///
  /// A new dispatcher takes its place and its shards.
  private mutating func crash(_ index: Int) async throws {
    if nodes[index].writes.contains(where: { !$0.events.isEmpty }) { expanding = false }
    let shards = Array(nodes[index].claims.keys)
    nodes[index] = makeNode()
    nodes[index].dispatch.update(
      limits: Dictionary(uniqueKeysWithValues: Self.functions.map { ($0, limits) })
    )
    for shard in shards.sorted(by: { $0.number < $1.number }) { try await give(shard, to: index) }
  }

  // MARK: Completion

  /// Runs until nothing is pending; throws if that never happens.
  private mutating func finish() async throws {
    for index in nodes.indices { try await learn(index) }
    for round in 0... {
      for index in nodes.indices {
        while !nodes[index].writes.isEmpty { try await write(index) }
        while !nodes[index].reads.isEmpty { read(index) }
        try await expand(index)
        try await look(index)
        while !nodes[index].running.isEmpty { end(index) }
      }
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
        let isCalm = !hardship.crashes && !hardship.expiries && !hardship.failures
        guard !isCalm || runs[id] == 1 else {
          throw ModelError(description: "\(id) ran \(runs[id] ?? 0) times although nothing failed")
        }
      }
    }
    for keyspace in [DeliveryStore.due, DeliveryStore.lanes, ShardNotices.keyspace] {
      guard try await store.count(keyspace) == 0 else {
        throw ModelError(description: "rows are left in \(keyspace.name)")
      }
    }
  }
}
