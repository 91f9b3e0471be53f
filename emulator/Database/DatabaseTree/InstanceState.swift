import DatabaseModel
import DatabaseRules
import DocumentModel
import EventLog
import Events
import Identity
import InvocationContext
import Logging
import StorageEngine

/// The listeners and sessions of an instance, and the plan of what each request does.
///
/// It is used under the instance's lock, on a snapshot that shows all commits of the instance.
struct InstanceState {
  let name: String
  let settings: RealtimeDatabase.Settings
  var rules: DatabaseRuleset?
  private var listeners = ListenerTable()
  private var sessions: [UInt64: Session] = [:]
  private var nextListener: UInt64 = 0

  private struct Session {
    var caller: DatabaseCaller
    let sink: EventSink
    var listeners: [Listener] = []
    var disconnectWrites: [DisconnectRows.Row] = []
    var nextNumber: UInt64 = 0
    /// The requests that wait for a long read of the session; nil if there is none.
    var held: [InstanceRequest]?
  }

  /// The maximum number of a session's listeners.
  ///
  /// An app has dozens. Each costs memory, and time at each write that it sees.
  static let listenersMax = 10_000
  /// The maximum number of writes that a session stores for its end.
  static let disconnectWritesMax = 1000

  init(name: String, settings: RealtimeDatabase.Settings) {
    self.name = name
    self.settings = settings
  }

  var counts: (sessions: Int, listeners: Int) { (sessions.count, listeners.count) }

  /// What a request does once its commit, if it has one, is durable.
  struct Planned: Sendable {
    var batch: StorageBatch?
    /// The node that a write returns.
    var node = DatabaseNode.empty
    var deliveries: [Delivery] = []
    /// What happens instead if the commit fails.
    var failure: Delivery?
  }

  /// A message to a client or to a waiting caller.
  enum Delivery: Sendable {
    case event(EventSink, DatabaseSessionEvent)
    case read(LongRead)
    case written(CheckedContinuation<DatabaseNode, any Error>, Result<DatabaseNode, any Error>)
    case done(CheckedContinuation<Void, Never>)
  }

  // MARK: Planning

  /// Plans requests in their order; each sees what the earlier ones do.
  mutating func plan(
    _ requests: [InstanceRequest],
    in snapshot: any StorageSnapshot
  ) -> [Planned] {
    var view = TreeView(StoredTree(instance: name, snapshot: snapshot))
    return requests.flatMap { plan($0, &view) }
  }

  private mutating func plan(_ request: InstanceRequest, _ view: inout TreeView) -> [Planned] {
    switch request {
    case .open(let id, let caller, let sink):
      sessions[id] = Session(caller: caller, sink: sink)
      return []
    case .session(let id, let number, let request):
      // A request may come after the end of its session.
      guard let sink = sessions[id]?.sink else { return [] }
      guard sessions[id]?.held == nil else {
        sessions[id]?.held?.append(.session(id, request: number, request))
        return []
      }
      do {
        return [try plan(request, number, session: id, sink, &view)]
      } catch {
        return [Planned(deliveries: [reply(to: number, .failure(Self.visible(error)), sink)])]
      }
    case .close(let id): return release(id, &view) + close(id, &view)
    case .loaded(let read, let result): return loaded(read, result, &view)
    case .write(let write): return [plan(write, &view)]
    case .recheck(let continuation):
      let revoked = sessions.keys.sorted().flatMap { recheck($0, view) }
      return [Planned(deliveries: revoked + [.done(continuation)])]
    case .endEarlierSessions(let rows): return runDisconnectWrites(rows, &view)
    }
  }

  private mutating func plan(
    _ request: SessionRequest,
    _ number: UInt64,
    session id: UInt64,
    _ sink: EventSink,
    _ view: inout TreeView
  ) throws -> Planned {
    switch request {
    case .listen(let path, let query, let tag, let hash):
      return try listen(id, number, path, query, tag, hash, view)
    case .unlisten(let path, let query):
      removeListener(id, path, query)
      return Planned(deliveries: [reply(to: number, .success(.done), sink)])
    case .get(let path, let query):
      try reader.checkRead(path, query, as: caller(id), view)
      let selecting = try reader.selecting(query, at: path)
      var read = LongRead(session: id, request: number, path: path, query: selecting)
      read.caller = caller(id)
      read.ruledQuery = query
      return try plan(read, view)
    case .write(let write, let cause):
      var planned = try plan(write, as: caller(id), cause: cause, check: nil, &view)
      planned.deliveries.append(reply(to: number, .success(.done), sink))
      planned.failure = reply(to: number, .failure(Self.unavailable), sink)
      return planned
    case .onDisconnect(let write):
      return try storeDisconnectWrite(write, number, id, sink, view)
    case .cancelOnDisconnect(let path):
      var batch = StorageBatch()
      removeDisconnectWrites(id, at: path, from: &batch)
      var planned = Planned(deliveries: [reply(to: number, .success(.done), sink)])
      planned.batch = batch.operations.isEmpty ? nil : batch
      planned.failure = reply(to: number, .failure(Self.unavailable), sink)
      return planned
    case .authenticate(let caller):
      return authenticate(id, number, caller, sink, view)
    }
  }

  private func caller(_ session: UInt64) -> DatabaseCaller {
    sessions[session]?.caller ?? DatabaseCaller(.unauthenticated)
  }

  private func reply(
    to number: UInt64,
    _ result: Result<DatabaseSessionEvent.Reply, DatabaseError>,
    _ sink: EventSink
  ) -> Delivery {
    .event(sink, .reply(request: number, result))
  }

  private static let unavailable = DatabaseError(.unavailable, "The write could not be stored.")

  private static func visible(_ error: any Error) -> DatabaseError {
    error as? DatabaseError ?? .unreadable
  }

  // MARK: Writes

  private mutating func plan(_ single: SingleWrite, _ view: inout TreeView) -> Planned {
    do {
      var planned = try plan(
        single.write,
        as: single.caller,
        cause: single.cause,
        check: single.check,
        returnsNode: single.returnsNode,
        &view
      )
      planned.deliveries.append(.written(single.continuation, .success(planned.node)))
      planned.failure = .written(single.continuation, .failure(Self.unavailable))
      return planned
    } catch {
      return Planned(deliveries: [.written(single.continuation, .failure(error))])
    }
  }

  /// Plans a write; throws a `DatabaseError` for one that is refused, and what `check` throws.
  private mutating func plan(
    _ write: DatabaseWrite,
    as caller: DatabaseCaller,
    cause: String?,
    check: ((DatabaseNode) throws -> Void)?,
    returnsNode: Bool = false,
    _ view: inout TreeView
  ) throws -> Planned {
    let time = settings.now()
    let resolved = try ResolvedWrite(write, in: view, nowMilliseconds: time.milliseconds)
    var after = view
    let effects = try resolved.apply(to: &after)
    try checkRules(resolved, as: caller, view, after, nowMilliseconds: time.milliseconds)
    // The result of a condition tells what the node is.
    if check != nil || write.condition != nil {
      try reader.checkRead(write.path, nil, as: caller, view)
    }
    if let check { try check(view.node(at: write.path)) }
    if case .hash(let hash)? = write.condition {
      guard try view.node(at: write.path).clientHash == hash else { throw DatabaseError.stale }
    }
    // Read before anything moves, because the node may be too large.
    let node =
      returnsNode && mayReturnNode(resolved, as: caller, after)
      ? try after.node(at: write.path) : .empty
    guard !effects.isEmpty else { return Planned(node: node) }
    var batch = StorageBatch()
    for effect in effects { effect.append(to: &batch, instance: name) }
    if !write.disablesTriggers {
      let changes = try changes(of: resolved, view, after)
      EventCause.$current.withValue(cause) {
        _ = CommitLog.append(
          [],
          changes.map(Occurrence.value),
          commitTime: time,
          database: DatabaseName(project: settings.project),
          auth: caller.auth,
          to: &batch
        )
      }
    }
    let events = try listeners.events(of: resolved, before: view, after: after)
    view = after
    return Planned(batch: batch, node: node, deliveries: deliveries(events))
  }

  /// Returns false for an update of a node that the caller may not read, besides what it writes.
  private func mayReturnNode(
    _ write: ResolvedWrite,
    as caller: DatabaseCaller,
    _ after: TreeView
  ) -> Bool {
    guard write.isMerge else { return true }
    do {
      try reader.checkRead(write.base, nil, as: caller, after)
      return true
    } catch {
      return false
    }
  }

  private func deliveries(
    _ events: [(listener: Listener, event: DatabaseSessionEvent)]
  ) -> [Delivery] {
    events.compactMap { listener, event in
      sessions[listener.session].map { .event($0.sink, event) }
    }
  }

  private func checkRules(
    _ write: ResolvedWrite,
    as caller: DatabaseCaller,
    _ before: TreeView,
    _ after: TreeView,
    nowMilliseconds: Int64
  ) throws {
    guard !caller.isAdmin, let rules else { return }
    let request = DatabaseRulesRequest(
      auth: caller.rulesAuth,
      nowMilliseconds: nowMilliseconds,
      data: before,
      newData: after
    )
    // An update of nothing is decided like one of its node.
    let paths = write.locations.isEmpty ? [write.base] : write.locations.map(\.path)
    let decision = RecentDatabaseDecision(
      time: settings.now(),
      instance: name,
      method: "write",
      path: paths.first ?? .root,
      auth: request.auth,
      decision: rules.write(paths, request),
      file: rules.name
    )
    try settings.obey(decision)
  }

  /// Returns the changes for functions, each of the highest node that one of them may watch.
  private func changes(
    of write: ResolvedWrite,
    _ before: TreeView,
    _ after: TreeView
  ) throws -> [DatabaseChange] {
    var roots: [DatabasePath] = []
    for location in write.locations {
      guard let depth = settings.captureDepth(name, location.path) else { continue }
      roots.append(location.path.prefix(depth))
    }
    roots.sort()
    var last: DatabasePath?
    return try roots.compactMap { root in
      if let last, root.starts(with: last) { return nil }
      last = root
      let old = try before.node(at: root).json(.objects)
      let new = try after.node(at: root).json(.objects)
      guard old != new else { return nil }
      return DatabaseChange(instance: name, path: root.keys, before: old, after: new)
    }
  }

  // MARK: Reading and listening

  private var reader: InstanceReader {
    InstanceReader(name: name, settings: settings, rules: rules)
  }

  private mutating func listen(
    _ id: UInt64,
    _ number: UInt64,
    _ path: DatabasePath,
    _ query: DatabaseQuery?,
    _ tag: Int?,
    _ hash: String?,
    _ view: TreeView
  ) throws -> Planned {
    try reader.checkRead(path, query, as: caller(id), view)
    removeListener(id, path, query)
    guard sessions[id]?.listeners.count ?? 0 < Self.listenersMax else {
      throw DatabaseError(.tooBig, "A client may have at most \(Self.listenersMax) listeners.")
    }
    let selecting = query.flatMap { $0.selectsAll ? nil : $0 }
    nextListener += 1
    let listener = Listener(
      id: nextListener,
      session: id,
      path: path,
      query: query,
      tag: tag,
      hasWindow: selecting != nil
    )
    listeners.add(listener)
    sessions[id]?.listeners.append(listener)
    var read = LongRead(session: id, request: number, path: path, query: selecting)
    read.caller = caller(id)
    read.ruledQuery = query
    read.listener = listener.id
    // Without an index production only warns, and still keeps to the selected children.
    read.missingIndex = selecting.flatMap { reader.missingIndex($0, at: path) }
    read.hash = hash
    do {
      return try plan(read, view)
    } catch {
      removeListener(id, path, query)
      throw error
    }
  }

  // MARK: Long reads

  /// Reads a value in its turn, or beside the rounds if it is long.
  private mutating func plan(_ read: LongRead, _ view: TreeView) throws -> Planned {
    let budget = ReadBudget(bytes: settings.shortReadBytesMax, error: LongReadError())
    do {
      let value = try read.value(in: view.limited(to: budget), sequence: .max)
      return Planned(deliveries: answer(read, value))
    } catch is LongReadError {
      listener(read)?.loading = Listener.Loading()
      let held = sessions[read.session]?.held
      sessions[read.session]?.held = held ?? []
      return Planned(deliveries: [.read(read)])
    }
  }

  private func listener(_ read: LongRead) -> Listener? {
    sessions[read.session]?.listeners.first { $0.id == read.listener }
  }

  /// Returns the value for a client, and its response.
  private func answer(_ read: LongRead, _ value: LongRead.Value) -> [Delivery] {
    guard let sink = sessions[read.session]?.sink else { return [] }
    guard read.listener != nil else {
      return [reply(to: read.request, .success(.node(EncodedNode(value.node))), sink)]
    }
    guard let listener = listener(read) else {
      // The rules have changed meanwhile.
      return [reply(to: read.request, .failure(.permissionDenied), sink)]
    }
    listener.window = value.window
    let done = reply(
      to: read.request,
      .success(.listening(missingIndex: read.missingIndex)),
      sink
    )
    if let hash = read.hash, !hash.isEmpty, value.node.clientHash == hash { return [done] }
    let event = DatabaseSessionEvent.value(
      read.path,
      EncodedNode(value.node),
      tag: listener.tag
    )
    return [.event(sink, event), done]
  }

  /// Answers a long read with what happened since, and goes on with its session.
  private mutating func loaded(
    _ read: LongRead,
    _ result: Result<LongRead.Value, DatabaseError>,
    _ view: inout TreeView
  ) -> [Planned] {
    guard let sink = sessions[read.session]?.sink, sessions[read.session]?.held != nil else {
      return []
    }
    var planned: [Planned] = []
    do {
      let value = try result.get()
      let listener = listener(read)
      if listener?.loading?.isOutdated == true {
        listener?.loading = Listener.Loading()
        return [Planned(deliveries: [.read(read)])]
      }
      var deliveries = answer(read, value)
      let touches = listener?.loading?.touches ?? []
      listener?.loading = nil
      for touch in touches where touch.sequence ?? .max > value.sequence {
        switch touch.change {
        case .event(let event): deliveries.append(.event(sink, event))
        case .children(let keys):
          let event = try listener.flatMap { try ListenerTable.childrenEvent($0, keys, view) }
          if let event { deliveries.append(.event(sink, event)) }
        }
      }
      planned.append(Planned(deliveries: deliveries))
    } catch {
      if let listener = listener(read) {
        removeListener(read.session, listener.path, listener.query)
      }
      planned.append(
        Planned(deliveries: [reply(to: read.request, .failure(Self.visible(error)), sink)])
      )
    }
    return planned + release(read.session, &view)
  }

  /// Plans the requests that waited for a long read, up to the next long one.
  private mutating func release(_ id: UInt64, _ view: inout TreeView) -> [Planned] {
    guard let held = sessions[id]?.held else { return [] }
    sessions[id]?.held = nil
    return held.flatMap { plan($0, &view) }
  }

  /// Notes the result of a round for the listeners whose first values are being read.
  mutating func endRound(through sequence: UInt64, hasFailed: Bool) {
    for session in sessions.values where session.held != nil {
      for listener in session.listeners where listener.loading != nil {
        listener.loading?.committed(through: sequence)
        if hasFailed { listener.loading?.isOutdated = true }
      }
    }
  }

  private mutating func removeListener(
    _ id: UInt64,
    _ path: DatabasePath,
    _ query: DatabaseQuery?
  ) {
    guard
      let index = sessions[id]?.listeners.firstIndex(where: {
        $0.path == path && $0.query == query
      }),
      let listener = sessions[id]?.listeners.remove(at: index)
    else { return }
    listeners.remove(listener)
  }

  private mutating func authenticate(
    _ id: UInt64,
    _ number: UInt64,
    _ caller: DatabaseCaller,
    _ sink: EventSink,
    _ view: TreeView
  ) -> Planned {
    sessions[id]?.caller = caller
    var batch = StorageBatch()
    let rows = (sessions[id]?.disconnectWrites ?? []).map { row in
      var row = row
      row.caller = caller
      DisconnectRows.put(row, instance: name, in: &batch)
      return row
    }
    sessions[id]?.disconnectWrites = rows
    var planned = Planned(deliveries: [reply(to: number, .success(.done), sink)])
    planned.deliveries += recheck(id, view)
    planned.batch = batch.operations.isEmpty ? nil : batch
    planned.failure = reply(to: number, .failure(Self.unavailable), sink)
    return planned
  }

  /// Removes the listeners of a session that the rules no longer allow.
  private mutating func recheck(_ id: UInt64, _ view: TreeView) -> [Delivery] {
    guard let session = sessions[id] else { return [] }
    var deliveries: [Delivery] = []
    for listener in session.listeners {
      do {
        try reader.checkRead(listener.path, listener.query, as: session.caller, view)
      } catch {
        removeListener(id, listener.path, listener.query)
        guard listener.loading == nil else { continue }
        deliveries.append(
          .event(
            session.sink,
            .revoked(listener.path, query: listener.query, tag: listener.tag)
          )
        )
      }
    }
    return deliveries
  }

  /// Returns the stored node for each listener, and moves the windows of queries to it.
  mutating func reload(in snapshot: any StorageSnapshot) -> [Delivery] {
    let view = TreeView(StoredTree(instance: name, snapshot: snapshot))
    return listeners.all.compactMap { listener in
      guard let sink = sessions[listener.session]?.sink else { return nil }
      guard listener.loading == nil else {
        listener.loading?.isOutdated = true
        return nil
      }
      do {
        if let window = listener.window {
          listener.window = try QueryWindow(window.query, at: window.path, in: view)
        }
        let node = try listener.window.map { try $0.node(in: view) } ?? view.node(at: listener.path)
        return .event(sink, .value(listener.path, EncodedNode(node), tag: listener.tag))
      } catch {
        // A client that cannot get its data must ask again.
        listeners.remove(listener)
        return .event(
          sink,
          .revoked(listener.path, query: listener.query, tag: listener.tag)
        )
      }
    }
  }

  // MARK: The end of sessions

  private mutating func storeDisconnectWrite(
    _ write: DatabaseWrite,
    _ number: UInt64,
    _ id: UInt64,
    _ sink: EventSink,
    _ view: TreeView
  ) throws -> Planned {
    let now = settings.now().milliseconds
    let resolved = try ResolvedWrite(write, in: view, nowMilliseconds: now)
    var after = view
    _ = try resolved.apply(to: &after)
    try checkRules(resolved, as: caller(id), view, after, nowMilliseconds: now)
    guard sessions[id]?.disconnectWrites.count ?? 0 < Self.disconnectWritesMax else {
      throw DatabaseError(
        .tooBig,
        "A client may have at most \(Self.disconnectWritesMax) operations on disconnect."
      )
    }
    var batch = StorageBatch()
    // A later write at the same place or above replaces what an earlier one would do there.
    if case .set(let path, _) = write.operation {
      removeDisconnectWrites(id, at: path, from: &batch)
    }
    guard var session = sessions[id] else { return Planned() }
    let row = DisconnectRows.Row(
      session: id,
      number: session.nextNumber,
      caller: session.caller,
      write: write
    )
    session.nextNumber += 1
    session.disconnectWrites.append(row)
    sessions[id] = session
    DisconnectRows.put(row, instance: name, in: &batch)
    return Planned(
      batch: batch,
      deliveries: [reply(to: number, .success(.done), sink)],
      failure: reply(to: number, .failure(Self.unavailable), sink)
    )
  }

  private mutating func removeDisconnectWrites(
    _ id: UInt64,
    at path: DatabasePath,
    from batch: inout StorageBatch
  ) {
    guard let rows = sessions[id]?.disconnectWrites else { return }
    let kept = rows.compactMap { row -> DisconnectRows.Row? in
      guard let rest = row.write.removing(path) else {
        batch.delete(
          DisconnectRows.keyspace,
          DisconnectRows.key(instance: name, session: id, number: row.number)
        )
        return nil
      }
      guard rest != row.write else { return row }
      var changed = row
      changed.write = rest
      DisconnectRows.put(changed, instance: name, in: &batch)
      return changed
    }
    sessions[id]?.disconnectWrites = kept
  }

  private mutating func close(_ id: UInt64, _ view: inout TreeView) -> [Planned] {
    guard let session = sessions.removeValue(forKey: id) else { return [] }
    for listener in session.listeners { listeners.remove(listener) }
    return runDisconnectWrites(session.disconnectWrites, &view)
  }

  /// Applies stored writes in their order; those that the rules refuse by now are dropped.
  private mutating func runDisconnectWrites(
    _ rows: [DisconnectRows.Row],
    _ view: inout TreeView
  ) -> [Planned] {
    rows.map { row in
      var planned: Planned
      do {
        planned = try plan(row.write, as: row.caller, cause: nil, check: nil, &view)
      } catch {
        settings.logger.debug(
          "An operation on disconnect was refused",
          metadata: ["instance": "\(name)", "path": "\(row.write.path)", "error": "\(error)"]
        )
        planned = Planned()
      }
      var batch = planned.batch ?? StorageBatch()
      batch.delete(
        DisconnectRows.keyspace,
        DisconnectRows.key(instance: name, session: row.session, number: row.number)
      )
      planned.batch = batch
      return planned
    }
  }
}

extension DatabaseWrite {
  /// Returns what is left of the write without everything at and below a path; nil for nothing.
  func removing(_ removed: DatabasePath) -> DatabaseWrite? {
    switch operation {
    case .set(let path, _), .setPriority(let path, _):
      return path.starts(with: removed) ? nil : self
    case .merge(let path, let members):
      let kept = members.filter { !path.appending($0.path).starts(with: removed) }
      guard !kept.isEmpty else { return nil }
      var write = self
      write.operation = .merge(path, kept)
      return write
    }
  }
}

extension Timestamp {
  var milliseconds: Int64 { microseconds.quotientAndRemainder(dividingBy: 1000).quotient }
}
