package import DocumentModel
import EventLog
import Events
package import Identity
import Logging
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// Opens a listener of a database; the caller must close it.
  ///
  /// Access is decided for the caller `auth`. `client` identifies the client for
  /// `waitForListeners`. The bytes queued for the client are reported to `memory`, and the queue is
  /// dropped if memory runs short.
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

  /// The number of open listeners and the number of different targets they have.
  package var listenerCounts: (sessions: Int, views: Int) { hub.counts }

  /// Checks a target and prepares its query.
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

  /// Returns the status that a client receives for an error.
  ///
  /// An error without a status is a bug; it is logged and reported as `INTERNAL`.
  func publicError(for error: any Error) -> StatusError {
    let error = StatusError.publicError(for: error) {
      logger.error("A listener failed inside", metadata: ["error": "\($0)"])
    }
    return StatusError(error.statusCode, error.statusMessage)
  }

  /// Returns the current time of the store and the sequence number of the last record of its log.
  func readPosition() async throws -> (readTime: Timestamp, sequence: UInt64) {
    let position = try await readLatest { try CommitLog.lastSequence(in: $0.snapshot) }
    return (position.readTime, position.answer)
  }

  /// Returns the unique number of this store, which is generated at its first start.
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

  // MARK: Acknowledgments

  /// The maximum time an acknowledgment waits for the snapshots of its client's listeners.
  ///
  /// The snapshots usually take a millisecond or two. A client whose listeners are slower has to
  /// handle either order.
  package static let handoverTimeMax = Duration.milliseconds(5)

  /// Returns once a client's listeners have passed every visible commit to their transports.
  ///
  /// Apps expect a write's snapshot before its acknowledgment, as with the official emulator. Waits
  /// at most `handoverTimeMax`, and not at all for a client without listeners. After a listener has
  /// missed that time, no later call waits for it until its client has caught up.
  package func waitForListeners(of client: ListenClient?) async {
    guard let client, case let sessions = hub.sessions(of: client), !sessions.isEmpty else {
      return
    }
    let handover = Handover()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [clock] in
        // The sleep ends early only when the wait is over.
        try? await clock.sleep(for: Self.handoverTimeMax)
      }
      group.addTask { [self] in
        // The commit has been made, so an error here must not be reported to its client.
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

  /// Reads the initial results of a subscriber and then adds it to the live subscribers.
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
    try await authorize(target, id, auth)
    var attempts = 0
    while session.wants(id) {
      attempts += 1
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
        // Too much was committed during the read, and some of it may have been sent already.
        session.reset(id)
      } catch let error as StatusError where error == Self.tooOld && attempts < Self.attemptsMax {
        // The past versions needed for the read are gone; the client starts over.
        session.reset(id)
        resumeTime = nil
      }
    }
  }

  /// The maximum number of attempts to read a target if the log is trimmed during the read.
  private static let attemptsMax = 5

  /// Returns the time of a resume point; nil if the client has to start over.
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
      // The store has not reached the token's time: it lost its latest commits.
      case .readTime, .ofAnotherStore:
        session.reset(id)
        return nil
      }
    }
  }

  /// Makes a subscriber live once the hub has processed every commit that the read shows.
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
        // The page is part of the results, so only the documents of later pages count in addition.
        await session.deliverEarly(early, of: id, keeping: page.keptBytes)
        // The next page is expensive, and the target may have ended.
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

  /// Sends only the changes since a time.
  private func resume(
    _ session: ListenSession,
    _ id: ListenTable.SubscriptionID,
    _ query: PreparedQuery,
    from time: Timestamp,
    _ expectedCount: Int?
  ) async throws -> Bool {
    // Read before the changes, so that the count is not newer than they are.
    let known = expectedCount == nil ? nil : hub.withTable { $0.count(of: query.query) }
    let (changes, sequence, readTime) = try await changes(since: time, in: query)
    var results: [ListenedChange] = []
    // The change in the number of results since the resume time.
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
      // A filter of no documents gives a client no information; it would have to start over.
      let hasDepartures = results.contains { !$0.isMember }
      if total == nil || total != 0 && hasDepartures || total != expectedCount + growth {
        let names = try await names(of: query.query, at: readTime)
        total = names.count
        let isRight = names.count == expectedCount + growth
        if !names.isEmpty && hasDepartures || !isRight {
          count = ResultCount(names, precedesDepartures: isRight)
        }
      }
    }
    return try await join(id, results, readAt: sequence, readTime, count: count, total: total)
  }

  /// Returns the number of a query's results as of a record, derived from an earlier count.
  ///
  /// Returns nil if that would cost more than counting, or if some changes in between are not
  /// known.
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

  /// Throws if the policy denies access; otherwise records the documents the permission depends on.
  ///
  /// From then on, the session rechecks the access as of every commit that changes one of them. The
  /// rechecks precede everything that the session sends later.
  private func authorize(
    _ target: PreparedTarget,
    _ id: ListenTable.SubscriptionID,
    _ auth: AuthContext
  ) async throws {
    guard auth != .admin else { return }
    while true {
      let policyVersion = hub.withTable(\.policyVersion)
      let permission = try await permission(for: target, auth)
      let isDecided = hub.withTable { table in
        // Changes of the policy during the decision found no dependencies to recheck.
        guard table.policyVersion == policyVersion else { return false }
        let unwatched = table.depend(id, on: permission.names, asOf: permission.sequence)
        // Neither did commits. Deciding again here might never end, because a decision can take
        // longer than the time between commits.
        if !unwatched.isEmpty { table.recheck([id], table.sequence, table.time) }
        return true
      }
      if isDecided { return }
    }
  }

  /// A subscriber's permission to listen.
  private struct Permission: Sendable {
    /// The documents that the policy has read.
    var names: Set<DocumentName>
    /// The sequence number of the commit whose state they showed.
    var sequence: UInt64
  }

  /// Throws if the policy denies access as of a moment; without one, as of now.
  private func permission(
    for target: PreparedTarget,
    _ auth: AuthContext,
    at moment: AccessMoment? = nil
  ) async throws -> Permission {
    try await LongDecisions.separated {
      try await storage.read { snapshot in
        var reader = SnapshotReader(snapshot)
        if let moment, moment.sequence < snapshot.sequence {
          guard try isKept(moment.time, of: target.database, in: snapshot) else {
            throw Self.tooOld
          }
          reader = SnapshotReader(snapshot, at: moment.time, moment.sequence)
        }
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
          sequence: moment?.sequence ?? snapshot.sequence
        )
      }
    }
  }

  /// Returns true if a subscriber has access as of a moment and until its next recheck.
  ///
  /// A document that decides may change with every commit, so the decision is not about now. Runs
  /// at lower priority than short work, because one commit can cause thousands of rechecks.
  func isAuthorized(
    _ target: PreparedTarget,
    _ id: ListenTable.SubscriptionID,
    at moment: AccessMoment,
    _ auth: AuthContext
  ) async throws -> Bool {
    try await withTaskExecutorPreference(LongWorkExecutor.shared) {
      let names = try await permission(for: target, auth, at: moment).names
      let unwatched = hub.withTable { table -> Set<DocumentName>? in
        guard table.policyVersion == moment.policyVersion else { return nil }
        return table.depend(id, on: names, asOf: moment.sequence)
      }
      guard let unwatched else { return false }
      if unwatched.isEmpty { return true }
      return try await storage.read { snapshot in
        try areUnchanged(unwatched, of: target.database, since: moment, in: snapshot)
      }
    }
  }

  /// Returns true if documents are unchanged since a moment; false if that is no longer known.
  private func areUnchanged(
    _ names: Set<DocumentName>,
    of database: DatabaseName,
    since moment: AccessMoment,
    in snapshot: any StorageSnapshot
  ) throws -> Bool {
    guard try isKept(moment.time, of: database, in: snapshot) else { return false }
    return try names.allSatisfy { name in
      let key = DocumentKeys.key(name)
      let written = try snapshot.get(DocumentKeys.keyspace, key)?.version ?? 0
      return try written <= moment.sequence
        && !PastVersions.isChanged(key, after: moment.time, in: snapshot)
    }
  }

  /// Rechecks the access of all listeners; must be called after a change of the policy.
  package func recheckListeners() { hub.withTable { $0.recheckAll() } }

  /// Returns the changes in a query's collections since a time, one per document.
  private func changes(
    since time: Timestamp,
    in query: PreparedQuery
  ) async throws -> (changes: [DocumentChange], sequence: UInt64, readTime: Timestamp) {
    let database = query.query.database
    var changes: [DocumentName: DocumentChange] = [:]
    // A read at this time throws the right error if the past versions are gone.
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

  /// The number of log records read at a time to find changes.
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
    // Read after the permission was decided; a shared window may be older.
    join.sequence = try await readPosition().sequence
    hub.withTable { $0.join(join) }
    return true
  }

  /// Returns the documents that a window lacks; throws `CancellationError` once it is unwanted.
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
      count = ResultCount(
        now.documents.filter { $0.document != nil }.map(\.name),
        precedesDepartures: false
      )
    }
    return try await join(id, results, readAt: now.sequence, now.readTime, count: count)
  }
}
