import FirestoreClient
import PsstModels
import PsstServices

/// A backfill that embeds every message without a vector.
///
/// Messages with a vector are skipped, so runs may be repeated and killed. Every run starts from
/// the beginning. A `Lease` ensures that there is only one real run at a time, so that a provider
/// is not paid twice.
///
/// A run holds one page of messages and the vectors of a few batches in memory.
public struct EmbeddingBackfill: Sendable {
  private static let leaseName = "backfillEmbeddings"

  private let firestore: Firestore
  private let indexer: MessageIndexer
  private let vectors: PineconeIndex
  private let documents: DocumentReader
  private let settings: BackfillSettings
  private let sleep: @Sendable (Duration) async throws -> Void
  private let clock: any Clock<Duration>

  /// The maximum number of messages per batch, embedded in one request.
  private static let batchSize = 120
  /// The maximum size of a batch's texts in bytes, as in one request to a provider.
  private static let batchBytesMax = 300_000
  /// The maximum number of concurrent requests to the provider.
  private static let concurrency = 4
  /// The time limit of a run, shorter than its function's timeout.
  private static let timeMax: Duration = .seconds(3300)
  /// The number of pages between two reports of progress.
  private static let pagesPerReport = 10

  init(
    firestore: Firestore,
    indexer: MessageIndexer,
    vectors: PineconeIndex,
    documents: DocumentReader,
    settings: BackfillSettings,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    clock: any Clock<Duration>
  ) {
    self.firestore = firestore
    self.indexer = indexer
    self.vectors = vectors
    self.documents = documents
    self.settings = settings
    self.sleep = sleep
    self.clock = clock
  }

  /// Embeds messages of one chat or of all, at most `limit`; a dry run only counts them.
  ///
  /// The run ends before a batch that would bring the expected cost above `maxCostUSD`. The
  /// expectation is based on the cost of earlier texts. The cost can exceed the limit only if later
  /// texts have many more tokens per byte, and only by the batches in progress, at most four.
  ///
  /// Throws `ServiceError` if no message can be embedded because something is misconfigured, or if
  /// a cost is given for a model without a known price. Throws `FirestoreError`, and `LeaseError`
  /// for a real run during another. If a provider is down, the run ends with the reason in its
  /// report.
  public func run(
    chatID: String?,
    limit: Int? = nil,
    maxCostUSD: Double? = nil,
    dryRun: Bool,
    progress: @escaping @Sendable (BackfillReport) -> Void = { _ in }
  ) async throws -> BackfillReport {
    guard maxCostUSD == nil || vectors.model.dollarsPerMillionTokens != nil else {
      throw ServiceError(
        .misconfigured,
        "maxCostUSD is given, but the price of \(vectors.model.name) is not known; "
          + "set PSST_EMBEDDING_PRICE"
      )
    }
    try await vectors.prepare()
    let run = Run(
      backfill: self,
      chatID: chatID,
      limit: limit ?? .max,
      maxCostUSD: maxCostUSD ?? .infinity,
      report: BackfillReport(
        dryRun: dryRun,
        price: vectors.model.dollarsPerMillionTokens.map { ModelPrice(input: $0) }
      )
    )
    guard !dryRun else { return try await run.report(progress) }
    return try await Lease(Self.leaseName, in: firestore, clock: clock).hold {
      try await run.report(progress)
    }
  }

  /// The state of one run.
  private struct Run: Sendable {
    let backfill: EmbeddingBackfill
    let chatID: String?
    let limit: Int
    let maxCostUSD: Double
    var report: BackfillReport
    var pace: RequestPace
    var pages = 0
    let start = ContinuousClock.now

    init(
      backfill: EmbeddingBackfill,
      chatID: String?,
      limit: Int,
      maxCostUSD: Double,
      report: BackfillReport
    ) {
      self.backfill = backfill
      self.chatID = chatID
      self.limit = limit
      self.maxCostUSD = maxCostUSD
      self.report = report
      pace = RequestPace(backfill.settings)
    }

    private var firestore: Firestore { backfill.firestore }
    private var chats: CollectionReference { firestore.collection(Chat.collection) }

    /// Executes the run and returns its report.
    func report(_ progress: (BackfillReport) -> Void) async throws -> BackfillReport {
      var run = self
      try await run.messages(progress)
      return run.report
    }

    // MARK: Messages

    private mutating func messages(_ progress: (BackfillReport) -> Void) async throws {
      let query =
        chatID.map { chats.document($0).collection(Message.collection).query }
        ?? firestore.collectionGroup(Message.collection)
      let size = EmbeddingBackfill.batchSize * EmbeddingBackfill.concurrency
      let selected = query.select(["text", "mediaType", "senderID", "timestamp"])
      try await selected.pages(of: size) { page in
        let isGoingOn = try await self.page(page)
        pages += 1
        if pages.isMultiple(of: EmbeddingBackfill.pagesPerReport) { progress(report) }
        return isGoingOn
      }
      report.done = report.stopped == nil
    }

    /// Processes one page; returns false if the run must end.
    private mutating func page(_ page: QuerySnapshot) async throws -> Bool {
      let missing = try await missing(in: page)
      if !report.dryRun { try await embed(missing.messages) }
      if report.stopped == nil, report.missing >= limit {
        report.stopped = BackfillReport.Stop.limit
      }
      if report.stopped == nil, !missing.isLast,
        ContinuousClock.now - start > EmbeddingBackfill.timeMax
      {
        report.stopped = BackfillReport.Stop.time
      }
      return report.stopped == nil && !missing.isLast
    }

    private struct Missing {
      var messages: [UnembeddedMessage] = []
      /// True if no message can follow.
      var isLast = false
    }

    /// Returns the messages of a page without a vector, up to the limit.
    private mutating func missing(in page: QuerySnapshot) async throws -> Missing {
      var found = Missing()
      // Other documents also have collections of this name, such as an assistant's conversations.
      let messages = page.compactMap { UnembeddedMessage($0, backfill.documents) }
      if let last = page.last, chatID == nil { found.isLast = last.reference.isBehindChats }
      let withText = messages.filter { $0.expected != nil }
      let embedded = try await backfill.vectors.existing(withText.compactMap(\.expected))
      let lacking = withText.filter { !embedded.contains($0.expected?.id ?? "") }
      let chatIDs = Set(lacking.map(\.place.chatID)).sorted()
      let existing = try await firestore.getAll(chatIDs.map { chats.document($0) })
      let readable = existing.filter { backfill.documents.read($0, as: Chat.self)?.value != nil }
      let readableIDs = Set(readable.map(\.id))
      for message in messages {
        guard report.missing < limit else {
          found.isLast = false
          break
        }
        report.scanned += 1
        guard let expected = message.expected else {
          report.skipped += 1
          continue
        }
        if !embedded.contains(expected.id) {
          guard readableIDs.contains(message.place.chatID) else {
            report.skipped += 1
            continue
          }
          if report.dryRun {
            let estimate = estimate(message.textBytes)
            guard isAffordable(report.usage + estimate) else {
              report.stopped = BackfillReport.Stop.cost
              break
            }
            report.estimate(estimate)
          }
          report.missing += 1
          found.messages.append(message)
        }
      }
      return found
    }

    // MARK: Embedding

    private func isAffordable(_ usage: TokenUsage) -> Bool {
      (report.cost(of: usage) ?? 0) <= maxCostUSD
    }

    /// Estimates the tokens of texts at about four bytes per token; none for the stand-in.
    private func estimate(_ textBytes: Int) -> TokenUsage {
      let isFree = backfill.vectors.model.isDegraded
      return TokenUsage(promptTokens: isFree ? 0 : TokenUsage.estimate(textBytes))
    }

    /// Embeds messages in concurrent batches, until the next batch would cost too much.
    private mutating func embed(_ messages: [UnembeddedMessage]) async throws {
      let backfill = backfill
      var batches = EmbeddingBackfill.batches(messages)[...]
      // The expected usage of the batches in progress.
      var expected = TokenUsage()
      var running = 0
      try await withThrowingTaskGroup(of: Outcome.self) { group in
        while true {
          // The first batch runs alone, because it may be the probe of a provider that was down.
          let concurrency = report.embedded == 0 ? 1 : EmbeddingBackfill.concurrency
          while running < concurrency, report.stopped == nil,
            let messages = batches.first
          {
            let bytes = messages.reduce(0) { $0 + $1.textBytes }
            let estimate = estimate(bytes)
            let usage = report.expected(estimate)
            guard isAffordable(report.usage + expected + usage) else {
              // Batches in progress may turn out cheaper than expected.
              if running == 0 { report.stopped = BackfillReport.Stop.cost }
              break
            }
            batches.removeFirst()
            expected += usage
            running += 1
            let tokens = usage.totalTokens
            let wait = tokens == 0 ? .zero : pace.wait(tokens: tokens, now: .now - start)
            group.addTask {
              if wait > .zero { try await backfill.sleep(wait) }
              let batch = try await backfill.indexer.index(messages.map(\.place))
              return Outcome(batch: batch, estimate: estimate, expected: usage)
            }
          }
          guard let outcome = try await group.next() else { break }
          running -= 1
          expected -= outcome.expected
          try add(outcome)
        }
      }
    }

    private mutating func add(_ outcome: Outcome) throws {
      let batch = outcome.batch
      report.pay(batch.usage, estimated: outcome.estimate)
      report.embedded += batch.indexed
      // A message that was deleted or emptied in the meantime needs no vector any more.
      report.skipped += batch.skipped + batch.deleted
      report.fail(batch.failed, batch.reasons)
      guard let failure = batch.failure else { return }
      // The costs so far are always reported.
      if failure.kind == .misconfigured, report.embedded == 0, report.tokens == 0 { throw failure }
      report.stopped = BackfillReport.Stop.provider(failure)
    }
  }

  private struct Outcome: Sendable {
    var batch: MessageIndexer.Batch
    /// The estimated usage of the texts, independent of earlier texts.
    var estimate: TokenUsage
    /// The expected usage of the batch.
    var expected: TokenUsage
  }

  /// Splits messages so that a provider accepts each part in one request.
  private static func batches(_ messages: [UnembeddedMessage]) -> [[UnembeddedMessage]] {
    var batches: [[UnembeddedMessage]] = []
    var bytes = 0
    for message in messages {
      if let last = batches.last, last.count < batchSize,
        bytes + message.textBytes <= batchBytesMax
      {
        batches[batches.count - 1].append(message)
        bytes += message.textBytes
      } else {
        batches.append([message])
        bytes = message.textBytes
      }
    }
    return batches
  }
}

/// A message that may lack a vector, with only the fields needed to decide.
private struct UnembeddedMessage: Sendable {
  var place: MessagePlace
  /// The record that the message should have; nil if it needs none.
  var expected: PineconeIndex.Expected?
  /// The size of the embedded part of the text, in bytes.
  var textBytes = 0

  /// Reads a document; nil if it is not a message of a chat.
  init?(_ snapshot: DocumentSnapshot, _ documents: DocumentReader) {
    let segments = snapshot.reference.path.split(separator: "/").map(String.init)
    guard segments.count == 4, segments[0] == Chat.collection else { return nil }
    place = MessagePlace(chatID: segments[1], messageID: segments[3])
    // A message that cannot be read has no text to embed.
    let text = documents.read(snapshot, as: Message.self)?.value?.text ?? ""
    guard text.contains(where: { !$0.isWhitespace }) else { return }
    textBytes = MetadataLimits.text(text).utf8.count
    expected = place.key.map { id in
      PineconeIndex.Expected(
        id: id,
        metadata: [
          MetadataField.chatID: place.chatID, MetadataField.messageID: place.messageID,
        ]
      )
    }
  }
}

extension DocumentReference {
  /// True if no document from this one on, in the order of names, is in a chat.
  fileprivate var isBehindChats: Bool {
    guard let root = path.split(separator: "/").first else { return false }
    return Array(Chat.collection.utf8).lexicographicallyPrecedes(Array(root.utf8))
  }
}

extension BackendServices {
  /// The backfill that embeds messages without a vector.
  public var embeddingBackfill: EmbeddingBackfill {
    EmbeddingBackfill(
      firestore: firestore,
      indexer: indexer,
      vectors: vectors,
      documents: documents,
      settings: settings.backfill,
      sleep: retries.sleep,
      clock: clock
    )
  }
}
