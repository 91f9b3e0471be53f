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
  /// What models may use, and how often users may search.
  public var limits: UsageLimits

  /// Settings by value.
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

  /// Reads `OPENAI_*`, `PSST_*`, `PINECONE_*` and, for backups, the emulator's place.
  ///
  /// An absent or empty variable has a default. Throws `misconfigured` for an unknown `PSST_*`, which
  /// may be a limit with a typing error, for a number that makes no sense, for a model whose dimension is neither known nor given, and for half a price.
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
      "\(name) is no setting of Psst; its settings are \(names.sorted().joined(separator: ", "))"
    )
  }

  /// Where OpenAI itself is.
  static let openAIBaseURL = "https://api.openai.com/v1"

  /// A number in a range; nil for an absent variable.
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

  /// A whole number in a range, as `number(_:_:_:)` reads others.
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

  /// The prices that may be set, in US dollars for a million tokens.
  static let prices = 0.0...1_000_000
}

/// Which chat model is used.
public enum ChatSettings: Sendable, Hashable {
  /// No model: the work that needs one says so and goes on without it.
  case none
  /// A model of a server that speaks OpenAI's protocol, at its list price unless given.
  case openAI(baseURL: String, key: String?, model: String, price: ModelPrice? = nil)

  /// Reads a key or an address, as for embeddings, a model, which is never guessed, and its price.
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

/// Which embedding provider is used.
public enum EmbeddingSettings: Sendable {
  /// Shared words, labelled as such; for work without an account.
  case lexical
  /// A server that speaks OpenAI's protocol.
  case openAI(baseURL: String, key: String?, model: EmbeddingModel)

  /// Reads the provider; without a key or an address of one's own there is none.
  ///
  /// The lexical stand-in can also be named: a server may have chat models only.
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
        // A model nobody has measured gets a threshold that fits most measured ones.
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
