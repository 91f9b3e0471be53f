/// The configuration of Psst, made from an environment that is handed in.
public struct PsstSettings: Sendable {
  /// The model that embeds messages and queries.
  public var embedding: EmbeddingSettings
  /// The place of the vectors.
  public var vectors: VectorSettings
  /// The model that reads and answers.
  public var chat: ChatSettings
  /// How fast messages without a vector are embedded.
  public var backfill: BackfillSettings
  /// How the database is copied before a migration.
  public var backup: BackupSettings

  /// Settings by value.
  public init(
    embedding: EmbeddingSettings,
    vectors: VectorSettings,
    chat: ChatSettings = .none,
    backfill: BackfillSettings = BackfillSettings(),
    backup: BackupSettings = .none
  ) {
    self.embedding = embedding
    self.vectors = vectors
    self.chat = chat
    self.backfill = backfill
    self.backup = backup
  }

  /// Reads `OPENAI_*`, `PSST_*`, `PINECONE_*` and, for backups, the emulator's place.
  ///
  /// An absent or empty variable has a default. Throws `misconfigured` for a model whose dimension
  /// is neither known nor given.
  public init(environment: [String: String]) throws {
    let environment = environment.filter { !$0.value.isEmpty }
    embedding = try EmbeddingSettings(environment: environment)
    vectors = VectorSettings(environment: environment)
    chat = ChatSettings(environment: environment)
    backfill = try BackfillSettings(environment: environment)
    backup = BackupSettings(environment: environment)
  }

  /// Where OpenAI itself is.
  static let openAIBaseURL = "https://api.openai.com/v1"
}

/// Which chat model is used.
public enum ChatSettings: Sendable, Hashable {
  /// No model: the work that needs one says so and goes on without it.
  case none
  /// A model of a server that speaks OpenAI's protocol.
  case openAI(baseURL: String, key: String?, model: String)

  /// Reads a key or an address, as for embeddings, and a model, which is never guessed.
  init(environment: [String: String]) {
    let key = environment["OPENAI_API_KEY"]
    let address = environment["OPENAI_BASE_URL"]
    guard let model = environment["PSST_CHAT_MODEL"], key != nil || address != nil else {
      self = .none
      return
    }
    self = .openAI(baseURL: address ?? PsstSettings.openAIBaseURL, key: key, model: model)
  }
}

/// Which embedding provider is used.
public enum EmbeddingSettings: Sendable {
  /// Shared words, labelled as such; for work without an account.
  case lexical
  /// A server that speaks OpenAI's protocol.
  case openAI(baseURL: String, key: String?, model: EmbeddingModel)

  /// Reads the provider; without a key or an address of one's own there is none.
  init(environment: [String: String]) throws {
    let key = environment["OPENAI_API_KEY"]
    let address = environment["OPENAI_BASE_URL"]
    guard key != nil || address != nil else {
      self = .lexical
      return
    }
    let name = environment["PSST_EMBEDDING_MODEL"] ?? "text-embedding-3-small"
    let known = EmbeddingModel.known[name]
    let dimension = try Self.number(environment, "PSST_EMBEDDING_DIMENSION").map { Int($0) }
    guard let dimension = dimension ?? known?.dimension, (1...20_000).contains(dimension) else {
      throw ServiceError(
        .misconfigured,
        "PSST_EMBEDDING_MODEL is \(name), whose vectors are of unknown length; "
          + "set PSST_EMBEDDING_DIMENSION to it, from 1 to 20000"
      )
    }
    let threshold = try Self.number(environment, "PSST_EMBEDDING_THRESHOLD")
    self = .openAI(
      baseURL: address ?? PsstSettings.openAIBaseURL,
      key: key,
      model: EmbeddingModel(
        provider: "openai",
        name: name,
        dimension: dimension,
        // A model nobody has measured gets a threshold that fits most measured ones.
        relevanceThreshold: threshold ?? known?.threshold ?? 0.3,
        dollarsPerMillionTokens: try Self.number(environment, "PSST_EMBEDDING_PRICE")
          ?? known?.dollarsPerMillionTokens
      )
    )
  }

  static func number(_ environment: [String: String], _ name: String) throws -> Double? {
    guard let text = environment[name] else { return nil }
    guard let number = Double(text), abs(number) < 1_000_000 else {
      throw ServiceError(.misconfigured, "\(name) is \"\(text)\", which is not a sensible number")
    }
    return number
  }
}

/// Where the vector index is.
public struct VectorSettings: Sendable {
  /// The control plane's address.
  public var host: String
  /// The index's name.
  public var index: String
  /// The service's key; an emulator needs none.
  public var key: String?
  /// The cloud for an index that does not exist yet; an emulator does not care.
  public var cloud = "aws"
  /// The region of this cloud.
  public var region = "us-east-1"

  /// An index by address and name.
  public init(host: String, index: String = "chat-messages", key: String? = nil) {
    self.host = host
    self.index = index
    self.key = key
  }

  /// Reads `PINECONE_HOST`, else the emulator's `HEARTH_VECTORS_HOST`, else its usual address.
  init(environment: [String: String]) {
    let host = environment["PINECONE_HOST"] ?? environment["HEARTH_VECTORS_HOST"]
    self.init(
      host: Self.withScheme(host ?? "http://127.0.0.1:5080"),
      index: environment["PINECONE_INDEX"] ?? "chat-messages",
      key: environment["PINECONE_API_KEY"]
    )
  }

  private static func withScheme(_ host: String) -> String {
    if host.contains("://") { return host }
    let isLocal = host.hasPrefix("127.") || host.hasPrefix("localhost")
    return (isLocal ? "http://" : "https://") + host
  }
}
