/// What a backfill of embeddings did or, dry, would do.
public struct BackfillReport: Sendable, Hashable {
  /// Whether nothing was written.
  public var isDryRun: Bool
  /// Messages looked at.
  public var scanned = 0
  /// Scanned messages without a vector that should have one.
  public var missing = 0
  /// Missing messages that now have a vector.
  public var embedded = 0
  /// Messages that have and need no vector: blank ones, media without text, those without a chat.
  public var skipped = 0
  /// Messages that could not be embedded.
  public var failed = 0
  /// Tokens paid for, as the provider counted them, also for messages that failed; estimated for a
  /// dry run.
  public var tokens = 0
  /// The bytes of the texts that the tokens stand for.
  private var textBytes = 0
  /// Whether the run looked at every message.
  public var done = false
  /// Why the run ended early; nil if it did not.
  public var stopped: Stop?
  private let model: EmbeddingModel

  /// Why a run ends before it has looked at every message.
  public enum Stop: Sendable, Hashable, CustomStringConvertible {
    /// The requested number of messages was embedded.
    case limit
    /// Further messages would cost more than the caller allows.
    case cost
    /// A later call does the rest.
    case takenOver
    /// The provider cannot go on, for this reason.
    case provider(String)

    /// A sentence for the caller.
    public var description: String {
      switch self {
      case .limit: "the limit is reached; call again to go on"
      case .cost: "more would exceed maxCostUSD; call again with more to go on"
      case .takenOver: "a later call has taken over"
      case .provider(let reason): "\(reason); call again later to go on"
      }
    }
  }

  init(isDryRun: Bool, model: EmbeddingModel) {
    self.isDryRun = isDryRun
    self.model = model
  }

  /// What the tokens cost; nil for a model whose price is not known.
  public var estimatedCostUSD: Double? { cost(ofTokens: tokens) }

  /// The tokens of texts of so many bytes, by what the texts before had; none for a stand-in.
  ///
  /// At least a quarter of the bytes, as English has.
  func estimatedTokens(_ bytes: Int) -> Int {
    if model.isDegraded { return 0 }
    let atLeast = TokenUsage.estimate(bytes)
    guard textBytes > 0 else { return atLeast }
    let seen = Double(bytes) * Double(tokens) / Double(textBytes)
    return max(atLeast, Int(seen.rounded(.up)))
  }

  /// What tokens cost in US dollars; nil for a model whose price is not known.
  func cost(ofTokens tokens: Int) -> Double? {
    model.dollarsPerMillionTokens.map { $0 * Double(tokens) / 1_000_000 }
  }

  /// Counts a text as a dry run does.
  mutating func estimate(_ bytes: Int) {
    if !model.isDegraded { tokens += TokenUsage.estimate(bytes) }
  }

  /// Counts a batch whose texts have so many bytes.
  mutating func add(_ batch: MessageIndexer.Batch, textBytes: Int) {
    // A batch that cost nothing says nothing about the price of a byte.
    if batch.usage.totalTokens > 0 { self.textBytes += textBytes }
    embedded += batch.indexed
    // A message that was meanwhile deleted or emptied needs no vector any more.
    skipped += batch.skipped + batch.deleted
    failed += batch.failed
    tokens += batch.usage.totalTokens
  }
}
