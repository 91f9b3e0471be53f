/// What a backfill of embeddings did or, dry, would do.
public struct BackfillReport: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public let dryRun: Bool
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
  public private(set) var tokens = 0 { didSet { estimatedCostUSD = cost(ofTokens: tokens) } }
  /// What the tokens cost; nil for a model whose price is not known.
  @Nullable public private(set) var estimatedCostUSD: Double?
  /// The bytes of the texts that the tokens stand for.
  private var textBytes = 0
  /// Whether the run looked at every message.
  public var done = false
  /// Why the run ended early; nil if it did not.
  @Nullable public internal(set) var stopped: String?
  /// The model; nil in a report that was read.
  private var model: EmbeddingModel?

  private enum CodingKeys: String, CodingKey {
    case dryRun, scanned, missing, embedded, skipped, failed, tokens, estimatedCostUSD, done
    case stopped
  }

  /// Why a run ends before it has looked at every message, as sentences for the caller.
  enum Stop {
    static let limit = "the limit is reached; call again to go on"
    static let cost = "more would exceed maxCostUSD; call again with more to go on"

    static func provider(_ reason: String) -> String { "\(reason); call again later to go on" }
  }

  init(dryRun: Bool, model: EmbeddingModel) {
    self.dryRun = dryRun
    self.model = model
    _estimatedCostUSD = Nullable(wrappedValue: nil)
    _stopped = Nullable(wrappedValue: nil)
    estimatedCostUSD = cost(ofTokens: 0)
  }

  /// The tokens of texts of so many bytes, by what the texts before had; none for a stand-in.
  ///
  /// At least a quarter of the bytes, as English has.
  func estimatedTokens(_ bytes: Int) -> Int {
    if model?.isDegraded ?? true { return 0 }
    let atLeast = TokenUsage.estimate(bytes)
    guard textBytes > 0 else { return atLeast }
    let seen = Double(bytes) * Double(tokens) / Double(textBytes)
    return max(atLeast, Int(seen.rounded(.up)))
  }

  /// What tokens cost in US dollars; nil for a model whose price is not known.
  func cost(ofTokens tokens: Int) -> Double? {
    model?.dollarsPerMillionTokens.map { $0 * Double(tokens) / 1_000_000 }
  }

  /// Counts a text as a dry run does.
  mutating func estimate(_ bytes: Int) {
    if model?.isDegraded == false { tokens += TokenUsage.estimate(bytes) }
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
