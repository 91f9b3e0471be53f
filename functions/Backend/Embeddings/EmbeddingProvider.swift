/// A provider of embeddings: vectors that are close together if texts have similar meanings.
public protocol EmbeddingProvider: Sendable {
  /// The embedding model.
  ///
  /// An index never has vectors of two models.
  var model: EmbeddingModel { get }

  /// Returns one vector of unit length for each text, in order, and the tokens used.
  ///
  /// Charges the call to the payer. The number of texts is not limited, because the provider splits
  /// them as its service requires. The caller must leave out blank texts. Throws `ServiceError`,
  /// and then discards the vectors so far. The error is `limitReached` if the payer, or all payers
  /// together, have used up the limit of the day.
  func embeddings(of texts: [String], for payer: Payer) async throws -> Embeddings
}

/// Vectors and the tokens that they used.
public struct Embeddings: Sendable, Hashable {
  /// One vector for each text, in order.
  public var vectors: [[Float]]
  /// The tokens of the texts; zero if no model was asked.
  public var usage: TokenUsage

  /// Creates a result of vectors and their usage.
  public init(vectors: [[Float]], usage: TokenUsage) {
    self.vectors = vectors
    self.usage = usage
  }
}

/// An embedding model and its properties.
public struct EmbeddingModel: Sendable, Hashable {
  /// The provider: `openai` for any server with OpenAI's protocol, or `lexical`.
  public var provider: String
  /// The model's name.
  public var name: String
  /// The number of elements in a vector.
  public var dimension: Int
  /// The lowest score of a relevant message, specific to this model.
  public var relevanceThreshold: Double
  /// True if this is a stand-in for a model that does not capture meaning.
  public var isDegraded: Bool
  /// The price of a million tokens in US dollars; nil if unknown.
  public var dollarsPerMillionTokens: Double?

  /// Creates a model with its properties.
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

  /// The known properties of a model.
  struct Known {
    var dimension: Int
    var threshold: Double
    /// The known price; `PSST_EMBEDDING_PRICE` overrides it when prices change.
    var dollarsPerMillionTokens: Double
  }

  /// The models with known properties, by their names.
  static let known: [String: Known] = [
    "text-embedding-3-small": Known(dimension: 1536, threshold: 0.3, dollarsPerMillionTokens: 0.02),
    "text-embedding-3-large": Known(dimension: 3072, threshold: 0.3, dollarsPerMillionTokens: 0.13),
    "text-embedding-ada-002": Known(dimension: 1536, threshold: 0.7, dollarsPerMillionTokens: 0.1),
    "all-MiniLM-L6-v2": Known(dimension: 384, threshold: 0.25, dollarsPerMillionTokens: 0),
  ]
}
