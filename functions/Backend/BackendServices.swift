public import FirestoreClient
public import OutboundHTTP
import PsstServices

/// All services that the functions on messages need.
public struct BackendServices: Sendable {
  /// The indexer that keeps the vectors of messages up to date.
  public let indexer: MessageIndexer
  /// The search for messages.
  public let search: MessageSearch
  /// The limit of searches and other requests per user.
  public let searchLimit: SearchLimit
  /// The extractor that keeps clients' profiles up to date with their messages.
  public let profiles: ProfileExtractor
  /// The recorder of the last message in chats and contacts.
  public let contacts: ContactRecorder
  /// The service that creates chats.
  public let chats: ChatCreator
  /// The vector index that the indexer and the search use.
  public let vectors: PineconeIndex
  /// The provider of embeddings for messages and queries.
  public let embeddings: any EmbeddingProvider
  /// The chat model; nil if none is configured.
  public let chat: (any ChatModel)?
  /// The assistant that answers questions and acts for the user.
  public let assistant: Assistant
  /// The actions that summarize chats, find related messages and suggest reminders.
  public let quickActions: QuickActions
  /// The service that reminds trainers of silent clients.
  public let inactiveClients: InactiveClients
  /// The service that reminds trainers of overlapping events in their calendars.
  public let calendarConflicts: CalendarConflicts
  /// The migration that creates contacts for chats older than contacts.
  public let migration: ChatMigration
  /// The rollback that removes the contacts created by a run of the migration.
  public let rollback: MigrationRollback
  /// The sign-ups that are not complete.
  public let signUps: UnfinishedSignUps
  /// The backfill that embeds messages without a vector.
  public let embeddingBackfill: EmbeddingBackfill
  /// The backfill that reads messages not yet read for their client's profile.
  public let profileBackfill: ProfileBackfill

  /// Creates the services for a database and the configured providers.
  ///
  /// All calls of models go through one ledger, which counts and limits them.
  public init(
    firestore: Firestore,
    settings: PsstSettings,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries(),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    let ledger = UsageLedger(firestore: firestore, limits: settings.limits, now: retries.now)
    signUps = UnfinishedSignUps(firestore: firestore)
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
    chats = ChatCreator(
      firestore: firestore,
      documents: documents,
      flags: StoredFlags(firestore: firestore)
    )
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

  /// Throws if the index holds vectors of another model.
  ///
  /// A deployment then fails as a whole instead of each message separately. If the index service
  /// cannot be reached now, this does not throw: the first use checks again.
  public func checkIndex() async throws {
    do {
      try await vectors.prepare()
    } catch let error as ServiceError where error.kind != .misconfigured {
      return
    }
  }
}
