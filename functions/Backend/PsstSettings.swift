/// The configuration of Psst, read from a given environment.
public struct PsstSettings: Sendable {
  /// The model that embeds messages and queries.
  public var embedding: EmbeddingSettings
  /// The location of the vectors.
  public var vectors: VectorSettings
  /// The chat model.
  public var chat: ChatSettings
  /// The rate at which messages without a vector are embedded.
  public var backfill: BackfillSettings
  /// The method of the backup before a migration.
  public var backup: BackupSettings
  /// The limits of model calls and searches.
  public var limits: UsageLimits

  /// Creates settings from values.
  public init(
    embedding: EmbeddingSettings,
    vectors: VectorSettings,
    chat: ChatSettings = .none,
    backfill: BackfillSettings = BackfillSettings(),
    backup: BackupSettings = .none,
    limits: UsageLimits = UsageLimits()
  ) {
    self.embedding = embedding
    self.vectors = vectors
    self.chat = chat
    self.backfill = backfill
    self.backup = backup
    self.limits = limits
  }

  /// Reads `OPENAI_*`, `PSST_*`, `PINECONE_*` and, for backups, the emulator's address.
  ///
  /// An absent or empty variable has a default. Throws `misconfigured` for an unknown `PSST_*`,
  /// which may be a misspelled limit, for a number out of range, for a model whose dimension is
  /// neither known nor given, and if only one of two prices is known.
  public init(environment: [String: String]) throws {
    let environment = environment.filter { !$0.value.isEmpty }
    try Self.checkNames(environment)
    embedding = try EmbeddingSettings(environment: environment)
    vectors = VectorSettings(environment: environment)
    chat = try ChatSettings(environment: environment)
    backfill = try BackfillSettings(environment: environment)
    backup = BackupSettings(environment: environment)
    limits = try UsageLimits(environment: environment)
  }

  private static let names: Set<String> = [
    "PSST_BACKUP_DIRECTORY", "PSST_BACKUP_LOCATION", "PSST_CHAT_INPUT_PRICE", "PSST_CHAT_MODEL",
    "PSST_CHAT_OUTPUT_PRICE", "PSST_DOLLARS_PER_DAY", "PSST_EMBEDDING_DIMENSION",
    "PSST_EMBEDDING_MODEL", "PSST_EMBEDDING_PRICE", "PSST_EMBEDDING_REQUESTS_PER_MINUTE",
    "PSST_EMBEDDING_THRESHOLD", "PSST_EMBEDDING_TOKENS_PER_MINUTE", "PSST_SEARCHES_PER_MINUTE",
    "PSST_USER_TOKENS_PER_DAY",
  ]

  private static func checkNames(_ environment: [String: String]) throws {
    let unknown = environment.keys.filter { $0.hasPrefix("PSST_") && !names.contains($0) }.sorted()
    guard let name = unknown.first else { return }
    throw ServiceError(
      .misconfigured,
      "\(name) is not a setting of Psst; its settings are \(names.sorted().joined(separator: ", "))"
    )
  }

  /// The base URL of OpenAI.
  static let openAIBaseURL = "https://api.openai.com/v1"

  /// Returns a number in a range; nil for an absent variable.
  ///
  /// Throws `misconfigured` for anything else.
  static func number(
    _ environment: [String: String],
    _ name: String,
    _ range: ClosedRange<Double>
  ) throws -> Double? {
    guard let text = environment[name] else { return nil }
    guard let number = Double(text), range.contains(number) else { throw wrong(name, text, range) }
    return number
  }

  /// Returns an integer in a range; nil for an absent variable.
  ///
  /// Throws `misconfigured` for anything else.
  static func whole(
    _ environment: [String: String],
    _ name: String,
    _ range: ClosedRange<Int>
  ) throws -> Int? {
    guard let text = environment[name] else { return nil }
    guard let number = Int(text), range.contains(number) else { throw wrong(name, text, range) }
    return number
  }

  private static func wrong<Bound>(
    _ name: String,
    _ text: String,
    _ range: ClosedRange<Bound>
  ) -> ServiceError {
    ServiceError(
      .misconfigured,
      "\(name) is \"\(text)\", but must be a number from \(range.lowerBound) to "
        + "\(range.upperBound)\(Bound.self == Int.self ? ", and whole" : "")"
    )
  }

  /// The range of prices, in US dollars per million tokens.
  static let prices = 0.0...1_000_000
}

/// The configuration of the chat model.
public enum ChatSettings: Sendable, Hashable {
  /// No model. Work that needs one reports this and continues without it.
  case none
  /// A model of a server with OpenAI's protocol, at its list price if none is given.
  case openAI(baseURL: String, key: String?, model: String, price: ModelPrice? = nil)

  /// Reads the key or address, as for embeddings, the model and its price.
  ///
  /// There is no default model.
  init(environment: [String: String]) throws {
    let key = environment["OPENAI_API_KEY"]
    let address = environment["OPENAI_BASE_URL"]
    guard let model = environment["PSST_CHAT_MODEL"], key != nil || address != nil else {
      self = .none
      return
    }
    self = .openAI(
      baseURL: address ?? PsstSettings.openAIBaseURL,
      key: key,
      model: model,
      price: try Self.price(of: model, environment)
    )
  }

  private static func price(
    of model: String,
    _ environment: [String: String]
  ) throws -> ModelPrice? {
    let known = ModelPrice.knownChatModels[model]
    let input = try PsstSettings.number(environment, "PSST_CHAT_INPUT_PRICE", PsstSettings.prices)
    let output = try PsstSettings.number(environment, "PSST_CHAT_OUTPUT_PRICE", PsstSettings.prices)
    switch (
      input ?? known?.dollarsPerMillionInputTokens,
      output ?? known?.dollarsPerMillionOutputTokens
    ) {
    case (let input?, let output?): return ModelPrice(input: input, output: output)
    case (nil, nil): return nil
    default:
      throw ServiceError(
        .misconfigured,
        "PSST_CHAT_INPUT_PRICE and PSST_CHAT_OUTPUT_PRICE belong together; set both for \(model)"
      )
    }
  }
}

/// The configuration of the embedding provider.
public enum EmbeddingSettings: Sendable {
  /// Comparison by shared words, marked as degraded, for use without an account.
  case lexical
  /// A server with OpenAI's protocol.
  case openAI(baseURL: String, key: String?, model: EmbeddingModel)

  /// Reads the provider.
  ///
  /// Without a key or an address, the lexical stand-in is used. It can also be selected by its
  /// name, because a server may have only chat models.
  init(environment: [String: String]) throws {
    let key = environment["OPENAI_API_KEY"]
    let address = environment["OPENAI_BASE_URL"]
    guard key != nil || address != nil else {
      self = .lexical
      return
    }
    let name = environment["PSST_EMBEDDING_MODEL"] ?? "text-embedding-3-small"
    guard name != LexicalEmbedding().model.name else {
      self = .lexical
      return
    }
    let known = EmbeddingModel.known[name]
    let dimension = try PsstSettings.whole(environment, "PSST_EMBEDDING_DIMENSION", 1...20_000)
    guard let dimension = dimension ?? known?.dimension else {
      throw ServiceError(
        .misconfigured,
        "PSST_EMBEDDING_MODEL is \(name), whose vectors are of unknown length; "
          + "set PSST_EMBEDDING_DIMENSION to it, from 1 to 20000"
      )
    }
    let threshold = try PsstSettings.number(environment, "PSST_EMBEDDING_THRESHOLD", -1...1)
    self = .openAI(
      baseURL: address ?? PsstSettings.openAIBaseURL,
      key: key,
      model: EmbeddingModel(
        provider: "openai",
        name: name,
        dimension: dimension,
        // A model without a measured threshold gets one that fits most measured models.
        relevanceThreshold: threshold ?? known?.threshold ?? 0.3,
        dollarsPerMillionTokens: try PsstSettings.number(
          environment,
          "PSST_EMBEDDING_PRICE",
          PsstSettings.prices
        ) ?? known?.dollarsPerMillionTokens
      )
    )
  }
}

/// The location of the vector index.
public struct VectorSettings: Sendable {
  /// The address of the control plane.
  public var host: String
  /// The index's name.
  public var index: String
  /// The key of the service; an emulator needs none.
  public var key: String?
  /// The cloud for a new index; an emulator ignores it.
  public var cloud = "aws"
  /// The region of the cloud.
  public var region = "us-east-1"

  /// Creates settings for an index by its address and name.
  public init(host: String, index: String = "chat-messages", key: String? = nil) {
    self.host = host
    self.index = index
    self.key = key
  }

  /// Reads `PINECONE_HOST`, or the emulator's `HEARTH_VECTORS_HOST`, or uses its default address.
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
