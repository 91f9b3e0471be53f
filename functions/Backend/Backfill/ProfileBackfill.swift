import FirestoreClient
import PsstModels
import PsstServices

/// A backfill that reads every unread message for facts about its client.
///
/// It is for messages from before a model was configured or a contact existed. It examines only
/// chats of a trainer with one of their contacts. Messages that were read are skipped, so runs may
/// be repeated and killed. A `Lease` ensures that there is only one real run at a time, so that a
/// provider is not paid twice.
public struct ProfileBackfill: Sendable {
  private static let leaseName = "backfillProfiles"

  private let firestore: Firestore
  private let profiles: ProfileExtractor
  private let model: (any ChatModel)?
  private let documents: DocumentReader
  private let clock: any Clock<Duration>

  /// The number of messages or chats per page of a query.
  private static let pageSize = 200
  /// The maximum number of messages that the model reads concurrently.
  private static let concurrency = 8
  /// The time limit of a real run, shorter than its function's timeout.
  private static let timeMax: Duration = .seconds(3300)

  init(
    firestore: Firestore,
    profiles: ProfileExtractor,
    model: (any ChatModel)?,
    documents: DocumentReader,
    clock: any Clock<Duration>
  ) {
    self.firestore = firestore
    self.profiles = profiles
    self.model = model
    self.documents = documents
    self.clock = clock
  }

  /// Reads messages of one chat or of all, at most `limit`; a dry run only counts them.
  ///
  /// The run ends before a message that would bring the expected cost above `maxCostUSD`. The
  /// expectation is based on the cost of earlier messages, so only the messages in progress, at
  /// most eight, can exceed the limit.
  ///
  /// Throws `ServiceError` without a model, or if a cost is given for a model without a known
  /// price. Throws `FirestoreError`, and `LeaseError` for a real run during another. If the
  /// provider is down, the run ends with the reason in its report.
  public func run(
    chatID: String?,
    limit: Int? = nil,
    maxCostUSD: Double? = nil,
    dryRun: Bool,
    progress: @escaping @Sendable (BackfillReport) -> Void = { _ in }
  ) async throws -> BackfillReport {
    guard let model else {
      throw ServiceError(.misconfigured, "no chat model is configured; set PSST_CHAT_MODEL")
    }
    guard maxCostUSD == nil || model.price != nil else {
      throw ServiceError(
        .misconfigured,
        "maxCostUSD is given, but the price of \(model.name) is not known; set "
          + "PSST_CHAT_INPUT_PRICE and PSST_CHAT_OUTPUT_PRICE"
      )
    }
    let run = Run(
      backfill: self,
      limit: limit ?? .max,
      maxCostUSD: maxCostUSD ?? .infinity,
      report: BackfillReport(dryRun: dryRun, price: model.price)
    )
    guard !dryRun else { return try await run.report(chatID, progress) }
    return try await Lease(Self.leaseName, in: firestore, clock: clock).hold {
      try await run.report(chatID, progress)
    }
  }

  /// A message to be read, with its estimated usage.
  private struct UnreadMessage: Sendable {
    var place: MessagePlace
    var estimate: TokenUsage
  }

  /// The result of reading a message.
  private struct Reading: Sendable {
    var outcome: Result<ProfileExtractor.Outcome, ServiceError>
    var usage: TokenUsage
    var estimate: TokenUsage
    var expected: TokenUsage
  }

  /// The state of one run.
  private struct Run: Sendable {
    let backfill: ProfileBackfill
    let limit: Int
    let maxCostUSD: Double
    var report: BackfillReport
    let start = ContinuousClock.now

    init(backfill: ProfileBackfill, limit: Int, maxCostUSD: Double, report: BackfillReport) {
      self.backfill = backfill
      self.limit = limit
      self.maxCostUSD = maxCostUSD
      self.report = report
    }

    private var firestore: Firestore { backfill.firestore }

    /// Executes the run and returns its report.
    func report(
      _ chatID: String?,
      _ progress: (BackfillReport) -> Void
    ) async throws -> BackfillReport {
      var run = self
      let chats = firestore.collection(Chat.collection)
      if let chatID {
        if let reason = try await run.chat(try await chats.document(chatID).get(), progress) {
          run.report.stopped = BackfillReport.Stop.chat(reason)
        }
      } else {
        try await chats.query.select(["members", "isGroupChat"])
          .pages(of: ProfileBackfill.pageSize) { page in
            for chat in page where run.report.stopped == nil {
              _ = try await run.chat(chat, progress)
            }
            return run.report.stopped == nil
          }
      }
      run.report.done = run.report.stopped == nil
      return run.report
    }

    /// Processes the messages of one chat.
    ///
    /// Returns the reason if the chat is skipped because it is not between a trainer and one of
    /// their contacts.
    private mutating func chat(
      _ snapshot: DocumentSnapshot,
      _ progress: (BackfillReport) -> Void
    ) async throws -> SkipError? {
      let chat = backfill.documents.read(snapshot, as: Chat.self)
      let people: ProfilePeople
      do {
        people = try await ProfilePeople(of: chat, in: firestore, backfill.documents)
      } catch let reason as SkipError {
        return reason
      }
      guard try await people.pair.contact(in: firestore).get().exists else { return .noContact }
      try await snapshot.reference.collection(Message.collection).query
        .select(["text", "mediaType", "senderID", "timestamp"])
        .pages(of: ProfileBackfill.pageSize) { page in
          let unread = try await unread(in: page, of: snapshot.id, people)
          if !report.dryRun { try await read(unread) }
          if report.stopped == nil, report.missing >= limit {
            report.stopped = BackfillReport.Stop.limit
          }
          progress(report)
          return report.stopped == nil
        }
      return nil
    }

    /// Returns the unread messages of a page that have content, up to the limit.
    private mutating func unread(
      in page: QuerySnapshot,
      of chatID: String,
      _ people: ProfilePeople
    ) async throws -> [UnreadMessage] {
      let places = page.map { MessagePlace(chatID: chatID, messageID: $0.id) }
      let keys = places.compactMap(\.key)
      let stored = try await firestore.getAll(
        keys.map { people.pair.reading($0, in: firestore) }
      )
      // A message whose reading is missing or cannot be read is read again.
      let readings = zip(keys, stored).compactMap { key, snapshot in
        (try? snapshot.data(as: Lenient<ProfileReading>.self).value).map { (key, $0) }
      }
      let readingsByKey = Dictionary(uniqueKeysWithValues: readings)
      var unread: [UnreadMessage] = []
      for (snapshot, place) in zip(page, places) {
        guard report.missing < limit else { break }
        report.scanned += 1
        guard case .success(let message) = backfill.profiles.content(snapshot),
          people.has(message.senderID), let key = place.key
        else {
          report.skipped += 1
          continue
        }
        let reading = readingsByKey[key]
        if reading?.covers(message.version, by: backfill.model?.name) ?? false { continue }
        let estimate = FactReader.estimatedUsage(of: message)
        if report.dryRun {
          guard isAffordable(report.usage + estimate) else {
            report.stopped = BackfillReport.Stop.cost
            break
          }
          report.estimate(estimate)
        }
        report.missing += 1
        unread.append(UnreadMessage(place: place, estimate: estimate))
      }
      return unread
    }

    private func isAffordable(_ usage: TokenUsage) -> Bool {
      (report.cost(of: usage) ?? 0) <= maxCostUSD
    }

    /// Reads messages concurrently, until the next message would cost too much.
    private mutating func read(_ messages: [UnreadMessage]) async throws {
      let profiles = backfill.profiles
      var messages = messages[...]
      // The expected usage of the messages in progress.
      var expected = TokenUsage()
      var running = 0
      try await withThrowingTaskGroup(of: Reading.self) { group in
        while true {
          // The first message is read alone, because it may be the probe of a provider that was
          // down.
          let concurrency = report.tokens == 0 ? 1 : ProfileBackfill.concurrency
          while running < concurrency, report.stopped == nil,
            let message = messages.first
          {
            let usage = report.expected(message.estimate)
            guard isAffordable(report.usage + expected + usage) else {
              // Messages in progress may turn out cheaper than expected.
              if running == 0 { report.stopped = BackfillReport.Stop.cost }
              break
            }
            guard ContinuousClock.now - start < ProfileBackfill.timeMax else {
              report.stopped = BackfillReport.Stop.time
              break
            }
            messages.removeFirst()
            expected += usage
            running += 1
            group.addTask {
              var used = TokenUsage()
              let outcome: Result<ProfileExtractor.Outcome, ServiceError>
              do {
                outcome = .success(
                  try await profiles.extract(message.place, payer: .app, usage: &used)
                )
              } catch let error as ServiceError {
                outcome = .failure(error)
              }
              return Reading(
                outcome: outcome,
                usage: used,
                estimate: message.estimate,
                expected: usage
              )
            }
          }
          guard let reading = try await group.next() else { break }
          running -= 1
          expected -= reading.expected
          try add(reading)
        }
      }
    }

    private mutating func add(_ reading: Reading) throws {
      report.pay(reading.usage, estimated: reading.estimate)
      switch reading.outcome {
      case .success(.merged): report.embedded += 1
      // A message that was deleted, emptied or read in the meantime needs nothing any more.
      case .success: report.skipped += 1
      case .failure(let error):
        report.fail(1, [error.message])
        guard error.isOutage else { return }
        // The costs so far are always reported.
        if error.kind == .misconfigured, report.embedded == 0, report.tokens == 0 { throw error }
        report.stopped = BackfillReport.Stop.provider(error)
      }
    }
  }
}

extension BackendServices {
  /// The backfill that reads messages not yet read for their client's profile.
  public var profileBackfill: ProfileBackfill {
    ProfileBackfill(
      firestore: firestore,
      profiles: profiles,
      model: chat,
      documents: documents,
      clock: clock
    )
  }
}
