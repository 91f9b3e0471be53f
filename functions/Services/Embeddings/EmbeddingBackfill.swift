import FirestoreClient
import PsstModels

/// Embeds every message that has no vector yet.
///
/// Messages with a vector are left alone, so runs may be repeated and killed. A run notes the last
/// message it has done; the next run begins after that message, but looks at all the others too, so
/// that `done` is true only when nothing is left. Of two runs at once the later one goes on and the
/// earlier one stops after its current page, so that a provider is not paid twice.
///
/// Holds one page of messages and the vectors of a few batches at a time.
public struct EmbeddingBackfill: Sendable {
  /// The name of the checkpoint; the chat's id is appended for a run over a single chat.
  public static let name = "backfillEmbeddings"

  private let firestore: Firestore
  private let indexer: MessageIndexer
  private let vectors: PineconeIndex
  private let documents: DocumentReader
  private let settings: BackfillSettings
  private let sleep: @Sendable (Duration) async throws -> Void

  /// Messages embedded by one request and upserted by two.
  private static let batchSize = 120
  /// Requests to the provider at the same time.
  private static let concurrency = 4
  /// Pages between two reports of progress.
  private static let pagesPerReport = 10

  init(
    firestore: Firestore,
    indexer: MessageIndexer,
    vectors: PineconeIndex,
    documents: DocumentReader,
    settings: BackfillSettings,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.firestore = firestore
    self.indexer = indexer
    self.vectors = vectors
    self.documents = documents
    self.settings = settings
    self.sleep = sleep
  }

  /// Embeds messages of one chat or of all, at most `limit`; a dry run only counts them.
  ///
  /// Throws `ServiceError` when no message can be embedded because something is misconfigured, and
  /// `FirestoreError`. When a provider is down, the run ends with the reason in its report.
  public func run(
    chatID: String?,
    limit: Int?,
    dryRun: Bool,
    progress: (BackfillReport) -> Void = { _ in }
  ) async throws -> BackfillReport {
    try await vectors.prepare()
    var run = Run(
      backfill: self,
      chatID: chatID,
      limit: limit ?? .max,
      keeper: try await CheckpointKeeper(
        chatID.map { "\(Self.name)-\($0)" } ?? Self.name,
        in: firestore,
        ignoring: dryRun
      ),
      report: BackfillReport(isDryRun: dryRun, model: vectors.model)
    )
    try await run.messages(progress)
    return run.report
  }

  /// One run in progress.
  private struct Run {
    let backfill: EmbeddingBackfill
    let chatID: String?
    let limit: Int
    var keeper: CheckpointKeeper
    var report: BackfillReport
    var pace: RequestPace
    var pages = 0
    let start = ContinuousClock.now

    init(
      backfill: EmbeddingBackfill,
      chatID: String?,
      limit: Int,
      keeper: CheckpointKeeper,
      report: BackfillReport
    ) {
      self.backfill = backfill
      self.chatID = chatID
      self.limit = limit
      self.keeper = keeper
      self.report = report
      pace = RequestPace(backfill.settings)
    }

    private var firestore: Firestore { backfill.firestore }
    private var chats: CollectionReference { firestore.collection(Chat.collection) }
    private var counts: [String: Int] {
      ["scanned": report.scanned, "embedded": report.embedded, "failed": report.failed]
    }

    // MARK: Messages

    /// Visits all messages once, beginning after the message where an earlier run ended.
    mutating func messages(_ progress: (BackfillReport) -> Void) async throws {
      let start = keeper.cursor.map { firestore.document($0) }
      try await messages(after: start, upTo: nil, progress)
      if let start { try await messages(after: nil, upTo: start, progress) }
      guard report.stopped == nil else { return }
      report.done = true
      if !report.isDryRun { try await keeper.finish(counts: counts) }
    }

    private mutating func messages(
      after: DocumentReference?,
      upTo: DocumentReference?,
      _ progress: (BackfillReport) -> Void
    ) async throws {
      guard report.stopped == nil else { return }
      var query =
        chatID.map { chats.document($0).collection(Message.collection).query }
        ?? firestore.collectionGroup(Message.collection)
      if let upTo { query = query.where("__name__", .lessThanOrEqual, upTo) }
      query = query.select(["text", "mediaType", "senderID", "timestamp"])
      let size = EmbeddingBackfill.batchSize * EmbeddingBackfill.concurrency
      try await query.pages(of: size, after: after) { page in
        let isGoingOn = try await self.page(page)
        pages += 1
        if pages.isMultiple(of: EmbeddingBackfill.pagesPerReport) { progress(report) }
        return isGoingOn
      }
    }

    /// Does one page; false when the run must end.
    private mutating func page(_ page: QuerySnapshot) async throws -> Bool {
      let missing = try await missing(in: page)
      var cursor = missing.cursor
      if !report.isDryRun, !missing.messages.isEmpty {
        if !keeper.isClaimed { try await keeper.claim() }
        try await embed(missing.messages)
        // The next run first looks at messages that failed only temporarily.
        if report.stopped != nil { cursor = nil }
      }
      if report.stopped == nil, report.missing >= limit { report.stopped = .limit }
      if let cursor, try await !keeper.save(cursor: cursor, counts: counts) {
        report.stopped = .takenOver
      }
      return report.stopped == nil && !missing.isLast
    }

    private struct Missing {
      var messages: [UnembeddedMessage] = []
      /// The last message looked at.
      var cursor: String?
      /// Whether no message can follow.
      var isLast = false
    }

    /// The messages of a page without a vector, as many as the limit allows.
    private mutating func missing(in page: QuerySnapshot) async throws -> Missing {
      var found = Missing()
      // Other things also have collections of this name, such as an assistant's conversations.
      let messages = page.compactMap { UnembeddedMessage($0, backfill.documents) }
      if let last = page.last, chatID == nil { found.isLast = last.reference.isBehindChats }
      let withText = messages.filter { $0.hasText }
      let embedded = try await backfill.vectors.existing(
        withText.map(\.place.messageID),
        keptAs: MetadataField.messageID
      )
      let lacking = withText.filter { !embedded.contains($0.place.messageID) }
      let chatIDs = Set(lacking.map(\.place.chatID)).sorted()
      let existing = try await firestore.getAll(chatIDs.map { chats.document($0) })
      let chatsThere = Set(existing.filter(\.exists).map(\.id))
      found.cursor = page.last?.reference.path
      for message in messages {
        guard report.missing < limit else {
          found.isLast = false
          break
        }
        report.scanned += 1
        found.cursor = message.path
        if !message.hasText {
          report.skipped += 1
        } else if !embedded.contains(message.place.messageID) {
          guard chatsThere.contains(message.place.chatID) else {
            report.skipped += 1
            continue
          }
          report.missing += 1
          if report.isDryRun { report.estimate(message.textBytes) }
          found.messages.append(message)
        }
      }
      return found
    }

    // MARK: Embedding

    private mutating func embed(_ messages: [UnembeddedMessage]) async throws {
      let size = EmbeddingBackfill.batchSize
      let backfill = backfill
      let outcomes = try await withThrowingTaskGroup(of: BatchOutcome.self) { group in
        for first in stride(from: 0, to: messages.count, by: size) {
          let part = messages[first..<min(first + size, messages.count)]
          let tokens = TokenUsage.estimate(part.reduce(0) { $0 + $1.textBytes })
          let wait =
            backfill.vectors.model.isDegraded
            ? Duration.zero : pace.wait(tokens: tokens, now: ContinuousClock.now - start)
          let places = part.map(\.place)
          group.addTask {
            if wait > .zero { try await backfill.sleep(wait) }
            return try await backfill.index(places)
          }
        }
        var outcomes: [BatchOutcome] = []
        for try await outcome in group { outcomes.append(outcome) }
        return outcomes
      }
      for outcome in outcomes {
        report.add(outcome.batch)
        if let reason = outcome.stopped { report.stopped = .provider(reason) }
      }
    }
  }

  /// The outcome of a batch, and why no further batch may follow.
  private struct BatchOutcome: Sendable {
    var batch: MessageIndexer.Batch
    var stopped: String?
  }

  private func index(_ places: [MessagePlace]) async throws -> BatchOutcome {
    do {
      return BatchOutcome(batch: try await indexer.index(places))
    } catch let error as ServiceError {
      switch error.kind {
      case .misconfigured: throw error
      case .refused where places.count > 1: return try await indexOneByOne(places)
      case .refused, .notFound, .alreadyExists:
        return BatchOutcome(batch: MessageIndexer.Batch(failed: places.count))
      case .unavailable, .rateLimited, .quotaExhausted:
        return BatchOutcome(
          batch: MessageIndexer.Batch(failed: places.count),
          stopped: error.message
        )
      }
    }
  }

  /// Embeds one message at a time, to find the text that a provider refuses.
  private func indexOneByOne(_ places: [MessagePlace]) async throws -> BatchOutcome {
    var outcome = BatchOutcome(batch: MessageIndexer.Batch())
    for (position, place) in places.enumerated() {
      let single = try await index([place])
      outcome.batch += single.batch
      if let reason = single.stopped {
        outcome.stopped = reason
        outcome.batch.failed += places.count - position - 1
        break
      }
    }
    return outcome
  }
}

/// A message that may lack a vector, with only the fields needed to tell.
private struct UnembeddedMessage: Sendable {
  var place: MessagePlace
  var path: String
  var hasText: Bool
  var textBytes: Int

  /// Reads a document; nil for one that is not a message of a chat.
  init?(_ snapshot: DocumentSnapshot, _ documents: DocumentReader) {
    path = snapshot.reference.path
    let segments = path.split(separator: "/").map(String.init)
    guard segments.count == 4, segments[0] == Chat.collection else { return nil }
    place = MessagePlace(chatID: segments[1], messageID: segments[3])
    // A message that cannot be read has no text to embed.
    let text = documents.read(snapshot, as: Message.self)?.value?.text ?? ""
    hasText = text.contains { !$0.isWhitespace }
    textBytes = text.utf8.count
  }
}

extension DocumentReference {
  /// Whether this document and all that follow it in the order of names are in no chat.
  fileprivate var isBehindChats: Bool {
    guard let root = path.split(separator: "/").first else { return false }
    return Array(Chat.collection.utf8).lexicographicallyPrecedes(Array(root.utf8))
  }
}
