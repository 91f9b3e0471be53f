public import FirestoreClient
public import OutboundHTTP

/// Everything that the functions on messages need, put together once.
public struct MessageServices: Sendable {
  /// Keeps vectors in step with the messages.
  public let indexer: MessageIndexer
  /// Finds messages.
  public let search: MessageSearch
  /// Limits how often each user may search.
  public let searchLimit: SearchLimit
  /// Keeps clients' profiles in step with what messages say about them.
  public let profiles: ProfileExtractor
  /// Keeps the last message of chats and contacts.
  public let contacts: ContactRecorder
  /// The index that indexer and search use.
  public let vectors: PineconeIndex
  /// Embeds messages and queries.
  public let embeddings: any EmbeddingProvider
  /// The model that reads and answers; nil when none is configured.
  public let chat: (any ChatModel)?
  /// Answers questions, and acts for who asks.
  public let assistant: Assistant
  /// Sums up chats, finds what is related to a message and suggests reminders.
  public let quickActions: QuickActions
  /// Reminds trainers of clients with whom nobody writes.
  public let inactiveClients: InactiveClients
  /// Reminds trainers of calendar events that overlap.
  public let calendarConflicts: CalendarConflicts
  /// Makes contacts for chats that are older than contacts.
  public let migration: ChatMigration
  /// Removes the contacts that a run of the migration made.
  public let rollback: MigrationRollback
  /// Embeds messages that have no vector.
  public let embeddingBackfill: EmbeddingBackfill
  /// Reads messages that were not read for their client's profile.
  public let profileBackfill: ProfileBackfill

  /// Services over a database and the providers that the settings name.
  ///
  /// Every call of a model goes through one ledger, which counts and limits them.
  public init(
    firestore: Firestore,
    settings: PsstSettings,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    let ledger = UsageLedger(firestore: firestore, limits: settings.limits, now: retries.now)
    searchLimit = SearchLimit(firestore: firestore, limits: settings.limits, now: retries.now)
    embeddings =
      switch settings.embedding {
      case .lexical: LexicalEmbedding()
      case .openAI(let baseURL, let key, let model):
        MeteredEmbedding(
          provider: OpenAIEmbedding(
            model: model,
            baseURL: baseURL,
            key: key,
            http: http,
            retries: retries
          ),
          ledger: ledger
        )
      }
    vectors = PineconeIndex(
      settings: settings.vectors,
      model: embeddings.model,
      http: http,
      retries: retries
    )
    chat =
      switch settings.chat {
      case .none: nil
      case .openAI(let baseURL, let key, let model, let price):
        MeteredChat(
          provider: OpenAIChat(
            model: model,
            baseURL: baseURL,
            key: key,
            http: http,
            retries: retries,
            clock: clock
          ),
          price: price ?? ModelPrice.knownChatModels[model],
          ledger: ledger
        )
      }
    let documents = DocumentReader()
    let indexer = MessageIndexer(
      firestore: firestore,
      embeddings: embeddings,
      vectors: vectors,
      documents: documents
    )
    self.indexer = indexer
    search = MessageSearch(
      firestore: firestore,
      embeddings: embeddings,
      vectors: vectors,
      documents: documents,
      clock: clock,
      now: retries.now
    )
    assistant = Assistant(
      firestore: firestore,
      documents: documents,
      model: chat,
      search: search,
      clock: clock,
      now: retries.now
    )
    quickActions = QuickActions(
      firestore: firestore,
      documents: documents,
      model: chat,
      search: search,
      now: retries.now
    )
    inactiveClients = InactiveClients(firestore: firestore, documents: documents)
    calendarConflicts = CalendarConflicts(
      firestore: firestore,
      documents: documents,
      now: retries.now
    )
    profiles = ProfileExtractor(firestore: firestore, model: chat, documents: documents)
    profileBackfill = ProfileBackfill(
      firestore: firestore,
      profiles: profiles,
      model: chat,
      documents: documents,
      clock: clock
    )
    contacts = ContactRecorder(firestore: firestore, documents: documents)
    migration = ChatMigration(
      firestore: firestore,
      documents: documents,
      backup: settings.backup.backup(over: http),
      sleep: retries.sleep,
      clock: clock
    )
    rollback = MigrationRollback(
      firestore: firestore,
      documents: documents,
      sleep: retries.sleep,
      clock: clock
    )
    embeddingBackfill = EmbeddingBackfill(
      firestore: firestore,
      indexer: indexer,
      vectors: vectors,
      documents: documents,
      settings: settings.backfill,
      sleep: retries.sleep,
      clock: clock
    )
  }

  /// Throws when the index holds vectors of another model.
  ///
  /// A deployment then fails as a whole, instead of each message by itself. An index service that
  /// cannot be reached right now is no reason to throw: the first use asks again.
  public func checkIndex() async throws {
    do {
      try await vectors.prepare()
    } catch let error as ServiceError where error.kind != .misconfigured {
      return
    }
  }
}
