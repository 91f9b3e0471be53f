import DequeModule
package import DocumentModel
import Identifiers
import StatusCodes

/// The token of a transaction, opaque to clients.
package struct TransactionID: Sendable, Hashable {
  package var bytes: [UInt8]

  package init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Returns a new unique token.
  static func make() -> TransactionID { TransactionID(bytes: Array(RandomID.make().utf8)) }

  /// True if the token has the form of tokens that `make` returns.
  var isWellFormed: Bool {
    bytes.count == RandomID.lengthOfDocumentID && bytes.allSatisfy(RandomID.isCharacter)
  }
}

/// The read and commit modes of a transaction.
package enum TransactionOptions: Sendable, Hashable {
  /// Reads everything at one time, without locks: the given time, or the time of the first read.
  case readOnly(readTime: Timestamp? = nil)
  /// Reads and writes, with locks unless `optimistic`.
  ///
  /// `retry` is the aborted transaction whose age the new one takes.
  case readWrite(retry: TransactionID? = nil, optimistic: Bool = false)
}

/// The version of the documents that a read shows.
package enum ReadConsistency: Sendable, Hashable {
  case latest
  case transaction(TransactionID)
  /// Begins a transaction and reads in it; the result includes its token.
  case newTransaction(TransactionOptions)
  /// Reads as of a time at most one hour ago.
  case readTime(Timestamp)
}

/// The reads that an optimistic transaction locks and checks against its snapshot when it commits.
struct OptimisticReads: Sendable {
  var documents: Set<LockKey> = []
  var ranges: [QueryRange] = []
}

struct OpenTransaction: Sendable {
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
  /// The number of requests in flight; a transaction with any is not idle.
  var calls = 0
  /// The commit in progress.
  var commit: CommitUnderWay?
}

/// A transaction's commit that has not ended yet.
struct CommitUnderWay: Sendable {
  /// The hash of the writes, used to recognize a repeated request.
  var writes: Int
  let end = CommitEnd()
  /// True if the transaction ends even if its commit is cancelled, because of a reset.
  var isLast = false
}

/// The open transactions and a record of ended ones, without locks, tasks or clocks.
///
/// A client that receives no response to its commit sends the commit again, so the results of
/// commits are remembered. A token whose commit may have succeeded never gets `ABORTED`: clients
/// would run the transaction's function a second time.
///
/// Times are durations since the store was created. The caller releases the lock owners that a
/// method returns.
struct TransactionTable: Sendable {
  enum Ending: Sendable, Hashable {
    case committed
    case rolledBack
    /// Ended by a failed commit or by expiry.
    case aborted
  }

  /// The limits of production's transactions.
  struct Limits: Sendable {
    var lifetime: Duration = .seconds(270)
    var idle: Duration = .seconds(60)
    /// The maximum number of open transactions; further ones are refused.
    var openMax = 10_000
    /// The maximum number of remembered ended transactions; older tokens are just invalid.
    var endedMax = 10_000
    /// The maximum size of remembered commit results: enough for thousands of typical commits.
    var outcomeBytesMax = 16 << 20
  }

  /// The next step for a request to commit.
  enum CommitStart {
    /// The caller makes the commit, and then calls `end` or `reopen`.
    case begun(OpenTransaction)
    /// The same commit is in progress; its result is the result of this request.
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
    /// The results of the writes; nil once they were dropped to save memory.
    var outcome: CommitOutcome?
    var bytes: Int
  }

  private let limits: Limits
  private var open: [TransactionID: OpenTransaction] = [:]
  private var ended: [TransactionID: Ended] = [:]
  private var endedOrder: [TransactionID] = []
  /// The transactions whose commit results are remembered, oldest first.
  private var outcomeOrder: Deque<TransactionID> = []
  private var outcomeBytes = 0
  private var nextOwner: UInt64 = 1

  init(limits: Limits = Limits()) {
    self.limits = limits
  }

  var openCount: Int { open.count }

  /// Returns a new owner of locks, younger than all earlier ones.
  mutating func makeOwner() -> LockOwner {
    defer { nextOwner += 1 }
    return LockOwner(age: nextOwner, id: nextOwner)
  }

  /// Opens a transaction; a retry of an earlier read-write transaction takes the age of that one.
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

  /// Starts a read in a transaction; each call must be followed by `endCall`.
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

  mutating func endCall(_ id: TransactionID, at time: Duration) {
    open[id]?.calls -= 1
    open[id]?.used = time
  }

  /// Returns true if a transaction is still open; must be checked again after every wait.
  func isOpen(_ id: TransactionID) -> Bool { open[id] != nil }

  /// Returns the time of all reads; the first call sets it.
  mutating func pin(_ id: TransactionID, to time: Timestamp) -> Timestamp {
    if let pinned = open[id]?.readTime { return pinned }
    open[id]?.readTime = time
    return time
  }

  /// Records the reads of an optimistic transaction.
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

  /// Reopens a transaction whose commit was cancelled before it had any effect.
  ///
  /// Returns the owner if the transaction must end anyway.
  mutating func reopen(_ id: TransactionID, at time: Duration) -> LockOwner? {
    if open[id]?.commit?.isLast == true { return end(id, .aborted) }
    open[id]?.commit = nil
    open[id]?.used = time
    return nil
  }

  /// Ends a transaction by its commit and remembers the results.
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
      // The size of the result's own fields, and of each transform's value with its enum case.
      result.transformResults.reduce(size + 32) { $0 + StorageSize.value($1) + 16 }
    }
  }

  /// Ends a transaction; returns nil if it had already ended.
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
      // Removes half of them at once, so that the array is not shifted for each one.
      for old in endedOrder.prefix(limits.endedMax / 2) {
        outcomeBytes -= ended.removeValue(forKey: old)?.commit?.bytes ?? 0
      }
      endedOrder.removeFirst(limits.endedMax / 2)
      outcomeOrder.removeAll { ended[$0] == nil }
    }
    return transaction.owner
  }

  /// Ends a transaction at its client's request.
  ///
  /// Forgotten and ended tokens are accepted, as in production, except the token of a successful
  /// commit.
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

  /// Ends all transactions of a database; those with a commit in progress end after it.
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

  /// The error for an expired token.
  ///
  /// Clients look for "transaction has expired" in its message.
  static let expired = StatusError.invalidArgument(
    "The referenced transaction has expired or is no longer valid."
  )

  /// The error of a rollback after a successful commit.
  ///
  /// No other request after a successful commit gets `ABORTED`.
  private static let committed = StatusError(.aborted, expired.statusMessage)

  /// The error for a well-formed token that is not known.
  ///
  /// Its message differs from that of `expired`: some clients react to that one by running the
  /// transaction's function again, although it may have been committed.
  static let unknown = StatusError.invalidArgument(
    "Invalid transaction. The server does not know its token: it ended long ago, or before the "
      + "server's last start. Read what it wrote before you run it again."
  )

  /// The error for a second commit with other writes.
  ///
  /// The official emulator refuses every second commit.
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
