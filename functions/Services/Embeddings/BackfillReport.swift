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
  /// Tokens, as the provider counted them; estimated for a dry run.
  public var tokens = 0
  /// Whether the run looked at every message.
  public var done = false
  /// Why the run ended early; nil if it did not.
  public var stopped: Stop?
  private let model: EmbeddingModel

  /// Why a run ends before it has looked at every message.
  public enum Stop: Sendable, Hashable, CustomStringConvertible {
    /// The requested number of messages was embedded.
    case limit
    /// A later call does the rest.
    case takenOver
    /// The provider cannot go on, for this reason.
    case provider(String)

    /// A sentence for the caller.
    public var description: String {
      switch self {
      case .limit: "the limit is reached; call again to go on"
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
  public var estimatedCostUSD: Double? {
    model.dollarsPerMillionTokens.map { $0 * Double(tokens) / 1_000_000 }
  }

  mutating func estimate(_ textBytes: Int) {
    // A stand-in for a model counts no tokens.
    if !model.isDegraded { tokens += TokenUsage.estimate(textBytes) }
  }

  mutating func add(_ batch: MessageIndexer.Batch) {
    embedded += batch.indexed
    // A message that was meanwhile deleted or emptied needs no vector any more.
    skipped += batch.skipped + batch.deleted
    failed += batch.failed
    tokens += batch.usage.totalTokens
  }
}

extension MessageIndexer.Batch {
  static func += (left: inout Self, right: Self) {
    left.indexed += right.indexed
    left.skipped += right.skipped
    left.deleted += right.deleted
    left.failed += right.failed
    left.usage += right.usage
  }
}
