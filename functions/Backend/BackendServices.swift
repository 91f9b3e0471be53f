public import FirestoreClient
public import OutboundHTTP
public import PsstServices

/// All services that the functions need.
///
/// Services that keep nothing between calls are created when they are used; each adds its property
/// in its own file.
public struct BackendServices: Sendable {
  /// The database, as the server's own client, which the access rules do not restrict.
  public let firestore: Firestore
  /// The reader of stored documents.
  public let documents = DocumentReader()
  let settings: PsstSettings
  let http: any HTTPTransport
  let retries: ServiceRetries
  let clock: any Clock<Duration>
  /// The indexer that keeps the vectors of messages up to date.
  public let indexer: MessageIndexer
  /// The search for messages.
  public let search: MessageSearch
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
    self.firestore = firestore
    self.settings = settings
    self.http = http
    self.retries = retries
    self.clock = clock
    let ledger = UsageLedger(firestore: firestore, limits: settings.limits, now: retries.now)
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
    indexer = MessageIndexer(
      firestore: firestore,
      embeddings: embeddings,
      vectors: vectors,
      documents: documents
    )
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
