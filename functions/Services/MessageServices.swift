public import FirestoreClient
public import OutboundHTTP

/// All that the functions on messages need, put together once.
public struct MessageServices: Sendable {
  /// Keeps vectors as the messages are.
  public let indexer: MessageIndexer
  /// Finds messages.
  public let search: MessageSearch
  /// Keeps clients' profiles by what messages say of them.
  public let profiles: ProfileExtractor
  /// Keeps what chats and contacts say of the last message.
  public let contacts: ContactRecorder
  /// The index that indexer and search use.
  public let vectors: PineconeIndex
  /// What embeds messages and queries.
  public let embeddings: any EmbeddingProvider
  /// The model that reads and answers; nil where none is configured.
  public let chat: (any ChatModel)?
  /// Makes the contacts of chats from before there were contacts.
  public let migration: ChatMigration
  /// Embeds messages that have no vector.
  public let backfill: EmbeddingBackfill

  /// Services over a database and the providers that the settings name.
  public init(
    firestore: Firestore,
    settings: PsstSettings,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries()
  ) {
    embeddings =
      switch settings.embedding {
      case .lexical: LexicalEmbedding()
      case .openAI(let baseURL, let key, let model):
        OpenAIEmbedding(model: model, baseURL: baseURL, key: key, http: http, retries: retries)
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
      case .openAI(let baseURL, let key, let model):
        OpenAIChat(model: model, baseURL: baseURL, key: key, http: http, retries: retries)
      }
    let indexer = MessageIndexer(firestore: firestore, embeddings: embeddings, vectors: vectors)
    self.indexer = indexer
    search = MessageSearch(firestore: firestore, embeddings: embeddings, vectors: vectors)
    profiles = ProfileExtractor(firestore: firestore, model: chat)
    contacts = ContactRecorder(firestore: firestore)
    migration = ChatMigration(
      firestore: firestore,
      backup: settings.backup.backup(over: http),
      sleep: retries.sleep
    )
    backfill = EmbeddingBackfill(
      firestore: firestore,
      indexer: indexer,
      vectors: vectors,
      settings: settings.backfill,
      sleep: retries.sleep
    )
  }

  /// Throws when the index holds vectors of another model, so that a deployment fails and not each
  /// message by itself.
  ///
  /// An index service that cannot be asked right now is no reason: the first use asks again.
  public func checkIndex() async throws {
    do {
      try await vectors.prepare()
    } catch let error as ServiceError where error.kind != .misconfigured {
      return
    }
  }
}
