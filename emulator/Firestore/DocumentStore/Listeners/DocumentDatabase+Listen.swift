package import DocumentModel
import EventLog
import Events
package import Identity
import Logging
import QueryEngine
import RuntimeSupport
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// A listener of a database, which must be closed, and for whose caller `auth` decides on access.
  ///
  /// `client` is who may ask for `waitForListeners`. What waits for the client is counted in
  /// `memory`, and dropped when there is too little.
  package func openListener(
    database: DatabaseName,
    auth: AuthContext,
    client: ListenClient? = nil,
    memory: (any ListenMemory)? = nil,
    configuration: ListenSession.Configuration = .init()
  ) -> ListenSession {
    let session = ListenSession(
      store: self,
      database: database,
      auth: auth,
      client: client,
      memory: memory,
      configuration: configuration
    )
    hub.insert(session)
    return session
  }

  /// How many listeners are open, and how many different targets they have.
  package var listenerCounts: (sessions: Int, views: Int) { hub.counts }

  /// Checks a target.
  func prepare(_ target: ListenTarget, of database: DatabaseName) throws -> PreparedTarget {
    switch target {
    case .documents(let names):
      guard !names.isEmpty else {
        throw StatusError.invalidArgument("A documents target needs at least one document.")
      }
      for name in names {
        try NameValidation.check(name)
        try NameValidation.check(name, isIn: database)
      }
      return .documents(Set(names).sorted(), database)
    case .query(var query):
      guard query.database == database else {
        throw StatusError.invalidArgument(
          "The query's parent is not in the stream's database \"\(database)\"."
        )
      }
      try NameValidation.check(parent: query.parent, in: database)
      query.projection = nil
      let prepared = try queryRunner.prepare(query)
      return query.limit == nil && query.offset == 0 ? .results(prepared) : .window(prepared)
    }
  }

  /// What a client is told of an error; one without a status is a bug and logged.
  func told(_ error: any Error) -> StatusError {
    if let error = error as? any StatusConvertible {
      return StatusError(error.statusCode, error.statusMessage)
    }
    logger.error("A listener failed inside", metadata: ["error": "\(error)"])
    return StatusError(.internal, "Internal error.")
  }

  /// The store's time and the last record of its log, both as of now.
  func readPosition() async throws -> (readTime: Timestamp, sequence: UInt64) {
    let position = try await readLatest { try CommitLog.lastSequence(in: $0.snapshot) }
    return (position.readTime, position.answer)
  }

  /// The number of this store, made at its first start, which no other store has.
  func storeNumber() async throws -> UInt64 {
    func stored() async throws -> UInt64? {
      try await storage.read { snapshot in
        try snapshot.get(Self.storeKeyspace, []).map { stored in
          var decoder = BinaryDecoder(stored.bytes)
          return try decoder.number()
        }
      }
    }
    if let number = try await stored() { return number }
    let number = UInt64.random(in: 1...(.max))
    var encoder = BinaryEncoder()
    encoder.append(number)
    var batch = StorageBatch()
    batch.put(Self.storeKeyspace, [], encoder.bytes)
    try await storage.commit(batch)
    return number
  }

  private static let storeKeyspace = Keyspace("store_number", .few)

  // MARK: Acknowledgements

  /// How long an acknowledgement waits for the snapshots of its client's listeners.
  ///
  /// They take a millisecond or two; a client whose listeners are slower has to cope with any
  /// order.
  package static let handoverTimeMax = Duration.milliseconds(5)

  /// Returns once the listeners of a client have given their transports every commit that is
  /// visible now.
  ///
  /// Apps expect a write's snapshot before its acknowledgement, as the official emulator has it.
  /// Waits for `handoverTimeMax` at most, and not at all for a client without listeners. A listener
  /// that missed the time is not waited for again until its client has caught up.
  package func waitForListeners(of client: ListenClient?) async {
    guard let client, case let sessions = hub.sessions(of: client), !sessions.isEmpty else {
      return
    }
    let handover = Handover()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [clock] in
        // A sleep ends early only because the wait is over.
        try? await clock.sleep(for: Self.handoverTimeMax)
      }
      group.addTask { [self] in
        // The commit is made, so an error here is not its client's to know.
        guard let last = try? await readPosition().sequence else { return }
        hub.withTable { table in
          table.after(last) { table in
            for session in sessions {
              session.deliver(handover)
              table.wake(session)
            }
            table.afterwards { handover.seal() }
          }
        }
        await handover.wait()
      }
      await group.next()
      handover.end()
      group.cancelAll()
    }
  }

  // MARK: Targets

  /// Reads what a subscriber has to be told first, and lets it go live.
  func listen(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    to target: PreparedTarget,
    from resumePoint: ResumePoint?,
    expecting expectedCount: Int?,
    auth: AuthContext
  ) async throws {
    var resumeTime: Timestamp?
    if let resumePoint {
      try await sequencer.open()
      resumeTime = try self.resumeTime(resumePoint, session, id, target.database)
    }
    var attempts = 0
    while session.wants(id) {
      attempts += 1
      try await authorize(target, id, auth)
      do {
        let isJoined =
          switch target {
          case .results(let query):
            if let resumeTime {
              try await resume(session, id, query, from: resumeTime, expectedCount)
            } else {
              try await listen(session, id, query, auth)
            }
          case .window(let query):
            try await listen(session, id, toWindow: query, resumeTime, expectedCount)
          case .documents(let names, _):
            try await listen(session, id, names, resumeTime, expectedCount, auth)
          }
        if isJoined { return }
        // Too much happened meanwhile, and some of it may have been told already.
        session.reset(id)
      } catch let error as StatusError where error == Self.tooOld && attempts < Self.attemptsMax {
        // The past that was to be read is gone: the client begins anew.
        session.reset(id)
        resumeTime = nil
      }
    }
  }

  /// How often a target is read that the log is trimmed behind.
  private static let attemptsMax = 5

  /// The time that a resume point stands for; nil when the client has to begin anew.
  private func resumeTime(
    _ point: ResumePoint,
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    _ database: DatabaseName
  ) throws -> Timestamp? {
    switch point {
    case .readTime(let time):
      guard time <= sequencer.withClock({ $0.latest(now: $1) }) else {
        throw StatusError.invalidArgument("The requested 'read_time' cannot be in the future.")
      }
      return time
    case .token(let bytes):
      switch try hub.read(token: bytes, of: database) {
      case .readTime(let time) where time <= sequencer.withClock({ $0.latest(now: $1) }):
        return time
      // A time that this store has not reached: its last moments were lost, with their commits.
      case .readTime, .ofAnotherStore:
        session.reset(id)
        return nil
      }
    }
  }

  /// Lets a subscriber go live once the hub has taken what the read shows.
  private func join(
    _ id: ListenTable.SubscriptionID,
    _ results: [ListenedChange],
    bytes: Int = 0,
    readAt sequence: UInt64,
    _ readTime: Timestamp,
    count: ResultCount? = nil,
    total: Int? = nil
  ) async throws -> Bool {
    let last = try await readPosition().sequence
    return await withCheckedContinuation { continuation in
      hub.withTable { table in
        table.after(last) { table in
          let isJoined = table.join(
            id,
            with: results,
            bytes: bytes,
            readAt: sequence,
            readTime,
            count: count,
            total: total
          )
          table.afterwards { continuation.resume(returning: isJoined) }
        }
      }
    }
  }

  // MARK: Queries without limit

  private func listen(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    _ query: PreparedQuery,
    _ auth: AuthContext
  ) async throws -> Bool {
    var results: [ListenedChange] = []
    var bytes = 0
    var total = 0
    var first: QueryPage?
    try await self.query(query.query, at: .latest, auth: auth) { page in
      if first == nil { first = page }
      total += page.documents.count
      for document in page.documents {
        bytes += StorageSize.document(document.name, document.fields)
        results.append(.member(ListenedDocument(document)))
      }
      guard session.wants(id) else { throw CancellationError() }
      if bytes > session.resultBytesMax, !page.isLast {
        let early = ListenSession.Results(changes: results, time: page.readTime, bytes: bytes)
        results = []
        bytes = 0
        // The page is in the results, so only the documents of later ones count besides.
        let kept = max(0, page.heldBytes - configuration.queryPageBytesMax)
        await session.deliverEarly(early, of: id, keeping: kept)
        // The next page costs much, perhaps for nobody.
        guard session.wants(id) else { throw CancellationError() }
      }
    }
    guard let first else { throw StatusError(.internal, "A query has at least one page.") }
    return try await join(
      id,
      results,
      bytes: bytes,
      readAt: first.sequence,
      first.readTime,
      total: total
    )
  }

  /// Tells only what has changed since a time.
  private func resume(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    _ query: PreparedQuery,
    from time: Timestamp,
    _ expectedCount: Int?
  ) async throws -> Bool {
    // Asked before the changes are read, so it is not later than they are.
    let known = expectedCount == nil ? nil : hub.withTable { $0.count(of: query.query) }
    let (changes, sequence, readTime) = try await changes(since: time, in: query)
    var results: [ListenedChange] = []
    // By how much the number of results has grown since.
    var growth = 0
    for change in changes {
      let matched = change.before.map(query.matches) ?? false
      let matches = change.after.map(query.matches) ?? false
      growth += (matches ? 1 : 0) - (matched ? 1 : 0)
      if let after = change.after, matches || matched {
        let document = ListenedDocument(after)
        if change.before != after {
          results.append(matches ? .member(document) : .former(document))
        }
      } else if matched {
        results.append(.deleted(change.name))
      }
    }
    var count: ResultCount?
    var total: Int?
    if let expectedCount {
      if let known { total = try await self.count(known, through: sequence, of: query) }
      // From a filter of nothing a client learns nothing, and has to begin anew.
      let hasDepartures = results.contains { !$0.isMember }
      if total == nil || total != 0 && hasDepartures || total != expectedCount + growth {
        let names = try await names(of: query.query, at: readTime)
        total = names.count
        if !names.isEmpty && hasDepartures || names.count != expectedCount + growth {
          count = ResultCount(names)
        }
      }
    }
    return try await join(id, results, readAt: sequence, readTime, count: count, total: total)
  }

  /// The number of a query's results as of a record, worked out from that as of an earlier one.
  ///
  /// Nil when that would cost more than counting, or when what has happened since is not all known.
  private func count(
    _ known: ListenTable.KnownCount,
    through sequence: UInt64,
    of query: PreparedQuery
  ) async throws -> Int? {
    var (count, last) = (known.count, known.sequence)
    guard last <= sequence, sequence - last <= UInt64(max(Self.changesPage, count / 8)) else {
      return nil
    }
    let pin = longReads.begin(last)
    defer { longReads.end(pin) }
    while last < sequence {
      let after = last
      let records = try await withTaskExecutorPreference(LongWorkExecutor.shared) {
        try await storage.read { snapshot -> [CommitRecord]? in
          let trimmed = try CommitLog.trimmedThrough(in: snapshot)?.sequence ?? 0
          guard trimmed <= after else { return nil }
          return try CommitLog.records(after: after, limit: Self.changesPage, in: snapshot)
        }
      }
      guard let records else { return nil }
      for record in records where record.sequence <= sequence {
        if record.purpose == .discontinuity, record.database == query.query.database { return nil }
        for change in record.changes where query.covers(change.name) {
          if change.before.map(query.matches) ?? false { count -= 1 }
          if change.after.map(query.matches) ?? false { count += 1 }
        }
      }
      guard let end = records.last?.sequence else { break }
      last = end
    }
    return count
  }

  /// Throws the policy's refusal; otherwise notes on which documents the permission depends.
  ///
  /// Returns what decided: the documents, and the moment as of which it did.
  @discardableResult
  func authorize(
    _ target: PreparedTarget,
    _ id: ListenTable.SubscriptionID,
    _ auth: AuthContext
  ) async throws -> Permission {
    guard auth != .admin else { return Permission() }
    while true {
      let policyVersion = hub.withTable(\.policyVersion)
      var permission = try await LongDecisions.separated {
        try await self.permission(for: target, auth)
      }
      permission.policyVersion = policyVersion
      // What the hub took meanwhile, a commit or another policy, has found nothing to recheck.
      let (taken, isSamePolicy) = hub.withTable { table in
        table.depend(id, on: permission.names)
        return (table.sequence, table.policyVersion == policyVersion)
      }
      guard isSamePolicy else { continue }
      if taken <= permission.sequence { return permission }
      // Most commits concern nothing that decided; if each began the decision again, one that takes
      // longer than the time between two commits would never end.
      let holds = try await storage.read { snapshot in
        try areUnchanged(
          permission.names,
          of: target.database,
          since: permission.sequence,
          permission.time,
          in: snapshot
        )
      }
      if holds { return permission }
    }
  }

  /// Whether documents are as a commit left them; false also when that is known no longer.
  private func areUnchanged(
    _ names: Set<DocumentName>,
    of database: DatabaseName,
    since sequence: UInt64,
    _ time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> Bool {
    guard try isKept(time, of: database, in: snapshot) else { return false }
    return try names.allSatisfy { name in
      let key = DocumentKeys.key(name)
      let written = try snapshot.get(DocumentKeys.keyspace, key)?.version ?? 0
      return try written <= sequence && !PastVersions.isChanged(key, after: time, in: snapshot)
    }
  }

  /// Why a subscriber may listen.
  struct Permission: Sendable {
    /// The documents that the policy has looked at.
    var names: Set<DocumentName> = []
    /// The commit whose state they showed.
    var sequence: UInt64 = 0
    /// The time of that commit.
    var time = Timestamp(microseconds: 0)
    var policyVersion: UInt64 = 0
  }

  private func permission(
    for target: PreparedTarget,
    _ auth: AuthContext
  ) async throws -> Permission {
    try await storage.read { snapshot in
      let reader = SnapshotReader(snapshot)
      let notes = AccessView.Notes()
      let view = self.accessView(reader, notes: notes)
      switch target {
      case .results(let query), .window(let query):
        try self.accessPolicy.authorizeQuery(query.query, auth: auth, view: view)
      case .documents(let names, _):
        let found = try names.map { (name: $0, document: try view.document($0)) }
        try self.accessPolicy.authorizeReads(found, auth: auth, view: view)
      }
      return Permission(
        names: notes.names,
        sequence: snapshot.sequence,
        time: try StoredClock.read(snapshot)
      )
    }
  }

  /// Throws the refusal of a subscriber who was to be asked again from a moment on; false when it
  /// may listen now, but perhaps could not at some time since that moment.
  ///
  /// Runs behind short work: one commit can make thousands be asked.
  func isStillAuthorized(
    _ target: PreparedTarget,
    _ id: ListenTable.SubscriptionID,
    since moment: AccessMoment,
    _ auth: AuthContext
  ) async throws -> Bool {
    try await withTaskExecutorPreference(LongWorkExecutor.shared) {
      let permission = try await authorize(target, id, auth)
      guard permission.policyVersion == moment.policyVersion else { return false }
      guard permission.sequence > moment.sequence else { return true }
      return try await storage.read { snapshot in
        try areUnchanged(
          permission.names,
          of: target.database,
          since: moment.sequence,
          moment.time,
          in: snapshot
        )
      }
    }
  }

  /// Asks all listeners again, after the policy has changed.
  package func recheckListeners() { hub.withTable { $0.recheckAll() } }

  /// What was changed in a query's collections since a time, each document once.
  private func changes(
    since time: Timestamp,
    in query: PreparedQuery
  ) async throws -> (changes: [DocumentChange], sequence: UInt64, readTime: Timestamp) {
    let database = query.query.database
    var changes: [DocumentName: DocumentChange] = [:]
    // Reads at the time fail as this must, when the past that it needs is gone.
    var last = try await read(.init(), database, at: .readTime(time)) { reader in
      try PastVersions.sequence(at: time, of: database, in: reader.snapshot)
    }.answer
    let pin = longReads.begin(last)
    defer { longReads.end(pin) }
    while true {
      try Task.checkCancellation()
      let after = last
      let page = try await withTaskExecutorPreference(LongWorkExecutor.shared) {
        try await readLatest { reader in
          let trimmed = try CommitLog.trimmedThrough(in: reader.snapshot)?.sequence ?? 0
          guard trimmed <= after, try isKept(time, of: database, in: reader.snapshot) else {
            throw Self.tooOld
          }
          return (
            records: try CommitLog.records(
              after: after,
              limit: Self.changesPage,
              in: reader.snapshot
            ),
            sequence: reader.snapshot.sequence
          )
        }
      }
      guard let end = page.answer.records.last?.sequence else {
        return (Array(changes.values), page.answer.sequence, page.readTime)
      }
      for record in page.answer.records {
        for change in record.changes where query.covers(change.name) {
          changes[change.name, default: change].after = change.after
        }
      }
      last = end
      longReads.advance(pin, to: last)
    }
  }

  /// Records that are read at a time to find what has changed.
  private static let changesPage = 200

  private func names(of query: Query, at time: Timestamp) async throws -> [DocumentName] {
    var names: [DocumentName] = []
    var query = query
    query.projection = [.documentID]
    try await self.query(query, at: .readTime(time), auth: .admin) { page in
      names += page.documents.map(\.name)
    }
    return names
  }

  // MARK: Queries with a limit

  private func listen(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    toWindow query: PreparedQuery,
    _ resumeTime: Timestamp?,
    _ expectedCount: Int?
  ) async throws -> Bool {
    var join = ListenTable.Join(subscription: id, sequence: 0)
    if let resumeTime {
      var names = query.query
      names.projection = [.documentID]
      let page = try await self.query(names, at: .readTime(resumeTime), auth: .admin)
      for document in page.documents { join.known[document.name] = document.updateTime }
      let now = try await lookUp(
        Array(join.known.keys),
        mask: [],
        database: query.query.database,
        at: .latest,
        auth: .admin
      )
      join.deleted = Set(now.documents.filter { $0.document == nil }.map(\.name))
      join.expectedCount = expectedCount
    }
    // After the permission was decided; a shared window may be older.
    join.sequence = try await readPosition().sequence
    hub.withTable { $0.join(join) }
    return true
  }

  /// The documents that a window lacks, unless nobody wants them any longer.
  func documents(
    for reading: ListenTable.Reading,
    while isWanted: () -> Bool
  ) async throws -> QueryPage {
    guard isWanted() else { throw CancellationError() }
    var documents: [FirestoreDocument] = []
    var bytes = 0
    var first: QueryPage?
    try await query(
      reading.query,
      at: reading.time.map(ReadConsistency.readTime) ?? .latest,
      auth: .admin
    ) { page in
      guard isWanted() else { throw CancellationError() }
      for document in page.documents {
        bytes += StorageSize.document(document.name, document.fields)
      }
      guard bytes <= configuration.queryResultBytesMax else {
        throw StatusError(
          .resourceExhausted,
          "The query's results are larger than \(configuration.queryResultBytesMax) bytes; "
            + "lower its limit."
        )
      }
      documents += page.documents
      if first == nil { first = page }
    }
    guard var page = first else { throw StatusError(.internal, "A query has at least one page.") }
    page.documents = documents
    page.isLast = true
    return page
  }

  // MARK: Documents

  private func listen(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    _ names: [DocumentName],
    _ resumeTime: Timestamp?,
    _ expectedCount: Int?,
    _ auth: AuthContext
  ) async throws -> Bool {
    var old: [DocumentName: FirestoreDocument?]?
    if let resumeTime {
      let then = try await lookUp(names, mask: nil, at: .readTime(resumeTime), auth: .admin)
      old = Dictionary(uniqueKeysWithValues: then.documents.map { ($0.name, $0.document) })
    }
    let now = try await lookUp(names, mask: nil, at: .latest, auth: auth)
    var results: [ListenedChange] = []
    for (name, document) in now.documents where old?[name] != .some(document) {
      results.append(document.map { .member(ListenedDocument($0)) } ?? .deleted(name))
    }
    var count: ResultCount?
    if let old, let expectedCount, expectedCount != old.values.compactMap(\.self).count {
      count = ResultCount(now.documents.filter { $0.document != nil }.map(\.name))
    }
    return try await join(id, results, readAt: now.sequence, now.readTime, count: count)
  }
}
