/// Turns texts into vectors that lie close together where meanings do.
public protocol EmbeddingProvider: Sendable {
  /// The model that makes the vectors; vectors of two models never share an index.
  var model: EmbeddingModel { get }

  /// One vector of unit length for each text, in order, and the tokens used.
  ///
  /// Charges the call to the payer. There may be any number of texts: the provider splits them as
  /// its service requires. The caller leaves out blank texts. Throws `ServiceError`, and then loses
  /// what was embedded before; `limitReached` when the payer or all together have used their day's
  /// share.
  func embeddings(of texts: [String], for payer: Payer) async throws -> Embeddings
}

/// Vectors, and what they cost.
public struct Embeddings: Sendable, Hashable {
  /// One vector for each text, in order.
  public var vectors: [[Float]]
  /// The tokens of the texts; none when no model was asked.
  public var usage: TokenUsage

  /// Vectors.
  public init(vectors: [[Float]], usage: TokenUsage) {
    self.vectors = vectors
    self.usage = usage
  }
}

/// A model, and what belongs to it.
public struct EmbeddingModel: Sendable, Hashable {
  /// Who runs the model: `openai` for any server that speaks OpenAI's protocol, or `lexical`.
  public var provider: String
  /// The model's name.
  public var name: String
  /// Numbers in a vector.
  public var dimension: Int
  /// The score from which messages count as relevant, for this model only.
  public var relevanceThreshold: Double
  /// Whether this only stands in for a model and does not know meanings.
  public var isDegraded: Bool
  /// What a million tokens cost, in US dollars; nil when unknown.
  public var dollarsPerMillionTokens: Double?

  /// A model.
  public init(
    provider: String,
    name: String,
    dimension: Int,
    relevanceThreshold: Double,
    isDegraded: Bool = false,
    dollarsPerMillionTokens: Double? = nil
  ) {
    self.provider = provider
    self.name = name
    self.dimension = dimension
    self.relevanceThreshold = relevanceThreshold
    self.isDegraded = isDegraded
    self.dollarsPerMillionTokens = dollarsPerMillionTokens
  }

  /// What is known of a model by its name.
  struct Known {
    var dimension: Int
    var threshold: Double
    /// The known price; `PSST_EMBEDDING_PRICE` overrides it when prices change.
    var dollarsPerMillionTokens: Double
  }

  /// The models about which something is known.
  static let known: [String: Known] = [
    "text-embedding-3-small": Known(dimension: 1536, threshold: 0.3, dollarsPerMillionTokens: 0.02),
    "text-embedding-3-large": Known(dimension: 3072, threshold: 0.3, dollarsPerMillionTokens: 0.13),
    "text-embedding-ada-002": Known(dimension: 1536, threshold: 0.7, dollarsPerMillionTokens: 0.1),
    "all-MiniLM-L6-v2": Known(dimension: 384, threshold: 0.25, dollarsPerMillionTokens: 0),
  ]
}
