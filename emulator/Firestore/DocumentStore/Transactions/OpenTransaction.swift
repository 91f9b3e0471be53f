import DequeModule
package import DocumentModel
import RuntimeSupport

/// The token of a transaction, opaque to clients.
package struct TransactionID: Sendable, Hashable {
  package var bytes: [UInt8]

  /// A token as a client sent it, or as the store made it.
  package init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// A token that no other has.
  static func make() -> TransactionID { TransactionID(bytes: Array(RandomID.make().utf8)) }

  /// Whether `make` could have made it; otherwise it never was one.
  var isWellFormed: Bool {
    bytes.count == RandomID.lengthOfDocumentID && bytes.allSatisfy(RandomID.isCharacter)
  }
}

/// How a transaction is to read and commit.
package enum TransactionOptions: Sendable, Hashable {
  /// Reads everything at one time, the given one or the first read's, without locks.
  case readOnly(readTime: Timestamp? = nil)
  /// Pessimistic unless told otherwise; `retry` names the aborted transaction whose age it takes.
  case readWrite(retry: TransactionID? = nil, optimistic: Bool = false)
}

/// Which version of the documents a read shows.
package enum ReadConsistency: Sendable, Hashable {
  case latest
  case transaction(TransactionID)
  /// Begins a transaction and reads in it; its token comes with the answer.
  case newTransaction(TransactionOptions)
  /// Reads as of a time at most one hour ago.
  case readTime(Timestamp)
}

/// What an optimistic transaction has to lock and check against its snapshot when it commits.
struct OptimisticReads: Sendable {
  var documents: Set<LockKey> = []
  var ranges: [QueryRange] = []
}

/// An open transaction.
struct OpenTransaction: Sendable {
  /// How the transaction reads and locks.
  enum Mode: Sendable, Hashable {
    case readOnly
    case pessimistic
    case optimistic
  }

  let id: TransactionID
  let database: DatabaseName
  let mode: Mode
  let owner: LockOwner
  /// The time of all reads, once it is known; nil in a pessimistic transaction.
  var readTime: Timestamp?
  var reads = OptimisticReads()
  let begun: Duration
  var used: Duration
  /// Requests in flight; a transaction is not idle while it has any.
  var calls = 0
  /// The commit that is under way.
  var commit: CommitUnderWay?
}

/// A transaction's commit that has not ended yet.
struct CommitUnderWay: Sendable {
  /// The digest of the writes, by which a repeated request is recognized.
  var writes: Int
  let end = CommitEnd()
  /// Whether the transaction ends even if its commit is given up, because of a reset.
  var isLast = false
}

/// The open transactions and what is remembered of ended ones, without locks, tasks or clocks.
///
/// A client that does not get the answer to its commit sends the commit again, so the outcomes of
/// commits are remembered. A token whose commit may have succeeded is never answered with
/// `ABORTED`: clients would run the transaction's function a second time.
///
/// Times are durations since the store was made. The caller releases the lock owners that a method
/// returns.
struct TransactionTable: Sendable {
  /// How a transaction ended.
  enum Ending: Sendable, Hashable {
    case committed
    case rolledBack
    /// By a commit that failed, or for having been open for too long.
    case aborted
  }

  /// The limits of production's transactions.
  struct Limits: Sendable {
    var lifetime: Duration = .seconds(270)
    var idle: Duration = .seconds(60)
    /// The most open transactions; further ones are refused.
    var openMax = 10_000
    /// Ended transactions whose ending and age are remembered; older tokens are merely invalid.
    var endedMax = 10_000
    /// Bytes of all outcomes of commits that are remembered: thousands of usual ones.
    var outcomeBytesMax = 16 << 20
  }

  /// How a request to commit is to go on.
  enum CommitStart {
    /// The caller commits, and then calls `end` or `reopen`.
    case begun(OpenTransaction)
    /// The same commit is under way; how it ends is the answer.
    case underWay(CommitEnd)
    /// The same commit has succeeded.
    case committed(CommitOutcome)
  }

  private struct Ended {
    var ending: Ending
    var age: UInt64
    var mode: OpenTransaction.Mode
    var database: DatabaseName
    var commit: RememberedCommit?
  }

  private struct RememberedCommit {
    var writes: Int
    /// Nil when too many outcomes had to be remembered.
    var outcome: CommitOutcome?
    var bytes: Int
  }

  private let limits: Limits
  private var open: [TransactionID: OpenTransaction] = [:]
  private var ended: [TransactionID: Ended] = [:]
  private var endedOrder: [TransactionID] = []
  /// The transactions whose outcomes are remembered, oldest first.
  private var outcomeOrder: Deque<TransactionID> = []
  private var outcomeBytes = 0
  private var nextOwner: UInt64 = 1

  /// No transactions.
  init(limits: Limits = Limits()) {
    self.limits = limits
  }

  var openCount: Int { open.count }

  /// A new owner of locks, younger than all before.
  mutating func makeOwner() -> LockOwner {
    defer { nextOwner += 1 }
    return LockOwner(age: nextOwner, id: nextOwner)
  }

  /// Opens a transaction; a retry of any former one that could write takes its age.
  mutating func begin(
    _ id: TransactionID,
    _ options: TransactionOptions,
    in database: DatabaseName,
    at time: Duration
  ) throws(StatusError) -> OpenTransaction {
    guard open.count < limits.openMax else {
      throw StatusError(
        .resourceExhausted,
        "\(open.count) transactions are open; commit or roll back some"
      )
    }
    var owner = makeOwner()
    var mode = OpenTransaction.Mode.readOnly
    var readTime: Timestamp?
    switch options {
    case .readOnly(let time): readTime = time
    case .readWrite(let former, let optimistic):
      mode = optimistic ? .optimistic : .pessimistic
      if let former {
        guard (open[former]?.mode ?? ended[former]?.mode) != .readOnly else {
          throw .invalidArgument("Cannot retry a read-only transaction")
        }
        if let age = open[former]?.owner.age ?? ended[former]?.age { owner.age = age }
      }
    }
    let transaction = OpenTransaction(
      id: id,
      database: database,
      mode: mode,
      owner: owner,
      readTime: readTime,
      begun: time,
      used: time
    )
    open[id] = transaction
    return transaction
  }

  /// Starts a read in a transaction; each needs an `endCall`.
  mutating func beginCall(
    _ id: TransactionID,
    in database: DatabaseName,
    at time: Duration
  ) throws(StatusError) -> OpenTransaction {
    let transaction = try find(id, in: database, at: time)
    guard transaction.commit == nil else { throw Self.expired }
    open[id]?.calls += 1
    open[id]?.used = time
    return transaction
  }

  /// Ends a read.
  mutating func endCall(_ id: TransactionID, at time: Duration) {
    open[id]?.calls -= 1
    open[id]?.used = time
  }

  /// Whether a transaction is still open; asked again after anything that waited.
  func isOpen(_ id: TransactionID) -> Bool { open[id] != nil }

  /// Fixes the time of all reads; the first call decides, and every call returns it.
  mutating func pin(_ id: TransactionID, to time: Timestamp) -> Timestamp {
    if let pinned = open[id]?.readTime { return pinned }
    open[id]?.readTime = time
    return time
  }

  /// Notes what an optimistic transaction read.
  mutating func record(_ reads: OptimisticReads, for id: TransactionID) {
    open[id]?.reads.documents.formUnion(reads.documents)
    open[id]?.reads.ranges += reads.ranges
  }

  /// Starts the commit of a transaction, or finds the same commit of an earlier request.
  mutating func startCommit(
    _ id: TransactionID,
    writes: Int,
    in database: DatabaseName,
    at time: Duration
  ) throws(StatusError) -> CommitStart {
    if let ended = ended[id], let commit = ended.commit {
      guard ended.database == database else { throw Self.foreign }
      guard commit.writes == writes else { throw Self.otherWrites }
      guard let outcome = commit.outcome else { throw Self.outcomeForgotten }
      return .committed(outcome)
    }
    guard open[id] != nil || ended[id] != nil || !id.isWellFormed else { throw Self.unknown }
    let transaction = try find(id, in: database, at: time)
    if let commit = transaction.commit {
      guard commit.writes == writes else { throw Self.otherWrites }
      return .underWay(commit.end)
    }
    open[id]?.commit = CommitUnderWay(writes: writes)
    return .begun(open[id] ?? transaction)
  }

  /// Opens a transaction again whose commit was given up before it had any effect.
  ///
  /// Returns the owner when it has to end all the same.
  mutating func reopen(_ id: TransactionID, at time: Duration) -> LockOwner? {
    if open[id]?.commit?.isLast == true { return end(id, .aborted) }
    open[id]?.commit = nil
    open[id]?.used = time
    return nil
  }

  /// Ends a transaction by its commit and remembers the outcome.
  mutating func end(_ id: TransactionID, with outcome: CommitOutcome) {
    guard let commit = open[id]?.commit, end(id, .committed) != nil else { return }
    let bytes = Self.size(of: outcome)
    ended[id]?.commit = RememberedCommit(writes: commit.writes, outcome: outcome, bytes: bytes)
    outcomeBytes += bytes
    outcomeOrder.append(id)
    while outcomeBytes > limits.outcomeBytesMax, let oldest = outcomeOrder.popFirst() {
      outcomeBytes -= ended[oldest]?.commit?.bytes ?? 0
      ended[oldest]?.commit?.outcome = nil
      ended[oldest]?.commit?.bytes = 0
    }
  }

  private static func size(of outcome: CommitOutcome) -> Int {
    outcome.results.reduce(64) { size, result in
      // The size of the result's own fields, and of each transform's value with its case.
      result.transformResults.reduce(size + 32) { $0 + StorageSize.value($1) + 16 }
    }
  }

  /// Ends a transaction; nil when it had ended already.
  @discardableResult
  mutating func end(_ id: TransactionID, _ ending: Ending) -> LockOwner? {
    guard let transaction = open.removeValue(forKey: id) else { return nil }
    ended[id] = Ended(
      ending: ending,
      age: transaction.owner.age,
      mode: transaction.mode,
      database: transaction.database
    )
    endedOrder.append(id)
    if endedOrder.count > limits.endedMax {
      // Forgets half of them at once, so that the array is not shifted for each.
      for old in endedOrder.prefix(limits.endedMax / 2) {
        outcomeBytes -= ended.removeValue(forKey: old)?.commit?.bytes ?? 0
      }
      endedOrder.removeFirst(limits.endedMax / 2)
      outcomeOrder.removeAll { ended[$0] == nil }
    }
    return transaction.owner
  }

  /// Ends a transaction at its client's wish.
  ///
  /// Forgotten and ended tokens are accepted, as in production, except that of a successful commit.
  mutating func rollBack(
    _ id: TransactionID,
    in database: DatabaseName
  ) throws(StatusError) -> LockOwner? {
    if let transaction = open[id] {
      guard transaction.database == database else { throw Self.foreign }
      guard transaction.commit == nil else {
        throw StatusError(.aborted, "The transaction is being committed.")
      }
    }
    if ended[id]?.ending == .committed { throw Self.committed }
    guard id.isWellFormed else { throw Self.invalid }
    return end(id, .rolledBack)
  }

  /// Ends the transactions that are too old or have been idle for too long.
  mutating func expire(at time: Duration) -> [LockOwner] {
    let due = open.values.filter { isExpired($0, at: time) }
    return due.compactMap { end($0.id, .aborted) }
  }

  /// Ends all transactions of a database, those that are being committed after their commits.
  mutating func endAll(in database: DatabaseName) -> [LockOwner] {
    for (id, transaction) in open where transaction.database == database {
      open[id]?.commit?.isLast = true
    }
    let all = open.values.filter { $0.database == database && $0.commit == nil }
    return all.compactMap { end($0.id, .aborted) }
  }

  private func find(
    _ id: TransactionID,
    in database: DatabaseName,
    at time: Duration
  ) throws(StatusError) -> OpenTransaction {
    guard id.isWellFormed else { throw Self.invalid }
    guard let transaction = open[id], !isExpired(transaction, at: time) else { throw Self.expired }
    guard transaction.database == database else { throw Self.foreign }
    return transaction
  }

  private func isExpired(_ transaction: OpenTransaction, at time: Duration) -> Bool {
    guard transaction.commit == nil else { return false }
    return time - transaction.begun >= limits.lifetime
      || transaction.calls == 0 && time - transaction.used >= limits.idle
  }

  /// Clients look for "transaction has expired" in this text.
  static let expired = StatusError.invalidArgument(
    "The referenced transaction has expired or is no longer valid."
  )

  /// The status of a rollback after a successful commit; nothing else answers that with `ABORTED`.
  private static let committed = StatusError(.aborted, expired.statusMessage)

  /// Not the text of `expired`, by which some clients run the function of a transaction again that
  /// may well have been committed.
  static let unknown = StatusError.invalidArgument(
    "Invalid transaction. The server does not know its token: it ended long ago, or before the "
      + "server's last start. Read what it wrote before you run it again."
  )

  /// The official emulator takes no second commit of any kind.
  static let otherWrites = StatusError.invalidArgument(
    "The transaction has been committed with other writes. Begin another one for these."
  )

  static let outcomeForgotten = StatusError.invalidArgument(
    "The transaction has been committed. The results of its writes are no longer kept."
  )

  private static let invalid = StatusError.invalidArgument("Invalid transaction.")

  private static let foreign = StatusError.invalidArgument(
    "The referenced transaction belongs to another database."
  )
}
