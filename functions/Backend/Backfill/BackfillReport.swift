public import PsstServices

/// The report of a backfill, or of its dry run.
public struct BackfillReport: Codable, Sendable, Hashable {
  /// True if the run wrote nothing.
  public let dryRun: Bool
  /// The number of messages examined.
  public var scanned = 0
  /// The number of scanned messages without a required vector, or not yet read for facts.
  public var missing = 0
  /// The number of missing messages that now have a vector, or have been read.
  public var embedded = 0
  /// The number of messages that need nothing.
  ///
  /// These are blank messages and media without text, and in the embedding backfill also messages
  /// without a readable chat.
  public var skipped = 0
  /// The number of messages that could not be embedded, or read.
  public var failed = 0
  /// The number of tokens paid for, including those for messages that failed.
  ///
  /// The provider counts them; in a dry run they are estimated.
  public private(set) var tokens = 0
  /// The distinct reasons of failures, at most ten.
  public private(set) var errors: [String] = []
  /// The cost of the tokens in US dollars; nil if the model's price is unknown.
  @Nullable public private(set) var estimatedCostUSD: Double?
  /// True if the run examined every message.
  public var done = false
  /// The reason that the run ended early; nil if it did not.
  @Nullable public internal(set) var stopped: String?
  /// The price of the model; nil if unknown, and in a decoded report.
  private var price: ModelPrice?
  /// The usage so far.
  private(set) var usage = TokenUsage() {
    didSet {
      tokens = usage.totalTokens
      estimatedCostUSD = cost(of: usage)
    }
  }
  /// The estimated usage of the texts that were paid for.
  private var estimated = TokenUsage()

  private enum CodingKeys: String, CodingKey {
    case dryRun, scanned, missing, embedded, skipped, failed, errors, tokens, estimatedCostUSD
    case done, stopped
  }

  /// The reasons that a run ends early, as sentences for the caller.
  enum Stop {
    static let limit = "the limit is reached; call again to continue"
    static let time = "the time of one call is over; call again to continue"
    static let cost = "more would exceed maxCostUSD; call again with more to continue"

    static func chat(_ reason: SkipError) -> String { "the chat is left alone because \(reason)" }

    static func provider(_ error: ServiceError) -> String {
      error.kind == .limitReached
        ? "\(error); raise the limit, or call again when the next day begins in UTC"
        : "\(error); call again later to continue"
    }
  }

  init(dryRun: Bool, price: ModelPrice?) {
    self.dryRun = dryRun
    self.price = price
    _estimatedCostUSD = Nullable(wrappedValue: price?.dollars(TokenUsage()))
    _stopped = Nullable(wrappedValue: nil)
  }

  /// Returns the expected usage of a text.
  ///
  /// It is the estimate, scaled up if earlier texts used more than estimated.
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

  /// The maximum number of reasons in a report.
  ///
  /// A thousand failures mostly have the same few reasons.
  private static let errorsMax = 10

  /// Counts messages that failed for the given reasons.
  mutating func fail(_ count: Int, _ reasons: [String]) {
    failed += count
    for reason in reasons where errors.count < Self.errorsMax && !errors.contains(reason) {
      errors.append(reason)
    }
  }

  /// Returns the cost in US dollars; nil if the model's price is unknown.
  func cost(of usage: TokenUsage) -> Double? {
    // Rounding to a billionth of a dollar removes the inaccuracy of sums.
    price.map { ($0.dollars(usage) * 1e9).rounded() / 1e9 }
  }

  /// Adds the estimated usage of a text, in a dry run.
  mutating func estimate(_ estimate: TokenUsage) { usage += estimate }

  /// Adds the actual usage of texts, with the estimate made before.
  mutating func pay(_ used: TokenUsage, estimated estimate: TokenUsage) {
    // Texts without usage give no information about the accuracy of estimates.
    if used.totalTokens > 0 { estimated += estimate }
    usage += used
  }
}
