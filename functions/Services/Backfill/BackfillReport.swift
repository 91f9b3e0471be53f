/// What a backfill did or, dry, would do.
public struct BackfillReport: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public let dryRun: Bool
  /// Messages looked at.
  public var scanned = 0
  /// Scanned messages without a vector that should have one, or whose text was not read for facts.
  public var missing = 0
  /// Missing messages that now have a vector, or that have been read.
  public var embedded = 0
  /// Messages that need nothing: blank ones, media without text, and where vectors are made those
  /// without a chat.
  public var skipped = 0
  /// Messages that could not be embedded, or read.
  public var failed = 0
  /// Tokens paid for, as the provider counted them, also for messages that failed; estimated for a
  /// dry run.
  public private(set) var tokens = 0
  /// Why messages failed, each reason once, at most ten of them.
  public private(set) var errors: [String] = []
  /// What the tokens cost; nil for a model whose price is not known.
  @Nullable public private(set) var estimatedCostUSD: Double?
  /// Whether the run looked at every message.
  public var done = false
  /// Why the run ended early; nil if it did not.
  @Nullable public internal(set) var stopped: String?
  /// The price of the model; nil when it is not known, and in a report that was read.
  private var price: ModelPrice?
  /// The tokens so far, by their kinds.
  private(set) var usage = TokenUsage() {
    didSet {
      tokens = usage.totalTokens
      estimatedCostUSD = cost(of: usage)
    }
  }
  /// What the texts that used them were estimated to use.
  private var estimated = TokenUsage()

  private enum CodingKeys: String, CodingKey {
    case dryRun, scanned, missing, embedded, skipped, failed, errors, tokens, estimatedCostUSD
    case done, stopped
  }

  /// Why a run ends before it has looked at every message, as sentences for the caller.
  enum Stop {
    static let limit = "the limit is reached; call again to go on"
    static let time = "the time of one call is over; call again to go on"
    static let cost = "more would exceed maxCostUSD; call again with more to go on"

    static func chat(_ reason: SkipReason) -> String { "the chat is left alone because \(reason)" }

    static func provider(_ error: ServiceError) -> String {
      error.kind == .limitReached
        ? "\(error); raise the limit, or call again when the next day begins in UTC"
        : "\(error); call again later to go on"
    }
  }

  init(dryRun: Bool, price: ModelPrice?) {
    self.dryRun = dryRun
    self.price = price
    _estimatedCostUSD = Nullable(wrappedValue: price?.dollars(TokenUsage()))
    _stopped = Nullable(wrappedValue: nil)
  }

  /// What a text will probably use: its estimate, scaled up as earlier texts exceeded theirs.
  func expected(_ estimate: TokenUsage) -> TokenUsage {
    func scaled(_ tokens: KeyPath<TokenUsage, Int>) -> Int {
      let ratio = Double(usage[keyPath: tokens]) / Double(max(1, estimated[keyPath: tokens]))
      return Int((Double(estimate[keyPath: tokens]) * max(1, ratio)).rounded(.up))
    }
    guard estimated.totalTokens > 0 else { return estimate }
    return TokenUsage(
      promptTokens: scaled(\.promptTokens),
      completionTokens: scaled(\.completionTokens),
      isEstimated: true
    )
  }

  /// The most reasons of a report: those of a thousand failures are mostly the same.
  private static let errorsMax = 10

  /// Counts messages that failed for this reason.
  mutating func fail(_ count: Int, _ reasons: [String]) {
    failed += count
    for reason in reasons where errors.count < Self.errorsMax && !errors.contains(reason) {
      errors.append(reason)
    }
  }

  /// What tokens cost in US dollars; nil for a model whose price is not known.
  func cost(of usage: TokenUsage) -> Double? {
    // A billionth of a dollar is only the inaccuracy of sums.
    price.map { ($0.dollars(usage) * 1e9).rounded() / 1e9 }
  }

  /// Counts what a text is estimated to use, as a dry run does.
  mutating func estimate(_ estimate: TokenUsage) { usage += estimate }

  /// Counts what texts used, whose estimate was this.
  mutating func pay(_ used: TokenUsage, estimated estimate: TokenUsage) {
    // What cost nothing says nothing about the price of a text.
    if used.totalTokens > 0 { estimated += estimate }
    usage += used
  }
}
