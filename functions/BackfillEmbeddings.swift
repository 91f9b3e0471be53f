import FirestoreClient
public import FunctionsRuntime
import PsstServices

extension MessageFunctions {
  /// Embeds every message that has no vector yet; for administrators.
  ///
  /// Only counts, unless the order says `dryRun: false` and confirms it: embedding costs money.
  /// Safe to run again, and beside another run: the later run goes on and the earlier one stops.
  public var backfillEmbeddings: OnCall<BackfillEmbeddingsOrder, BackfillEmbeddingsReply> {
    .init(
      "backfillEmbeddings",
      callers: .claim("admin"),
      options: .init(
        memory: .mib512,
        timeout: .seconds(3600),
        secrets: Self.secrets
      )
    ) { request in
      let order = try request.data.checked()
      let logger = request.logger
      do {
        let report = try await services.backfill.run(
          chatID: order.chatId,
          limit: order.limit,
          maxCostUSD: order.maxCostUSD,
          dryRun: order.dryRun ?? true
        ) { report in
          logger.info("Backfill goes on", metadata: Self.metadata(report))
        }
        logger.info(
          "Backfill ended",
          metadata: Self.metadata(report).merging(services.modelMetadata) { $1 }
        )
        return BackfillEmbeddingsReply(report)
      } catch let error as ServiceError {
        logger.error("Backfill stopped", metadata: ["reason": "\(error)"])
        throw error.administrationError
      } catch let error as FirestoreError {
        logger.error("Backfill stopped", metadata: ["reason": "\(error)"])
        throw error.interruptionError
      }
    }
  }

  private static func metadata(_ report: BackfillReport) -> Logger.Metadata {
    [
      "backfill.dry": "\(report.isDryRun)", "backfill.scanned": "\(report.scanned)",
      "backfill.missing": "\(report.missing)", "backfill.embedded": "\(report.embedded)",
      "backfill.failed": "\(report.failed)", "backfill.tokens": "\(report.tokens)",
      "backfill.stopped": "\(report.stopped?.description ?? "no")",
    ]
  }
}

/// The order for `backfillEmbeddings`.
public struct BackfillEmbeddingsOrder: Codable, Sendable, Hashable {
  /// One chat to embed; all chats unless given.
  public var chatId: String?
  /// The most messages to embed; no limit unless given.
  public var limit: Int?
  /// Whether only to count; true unless given.
  public var dryRun: Bool?
  /// `backfill`, without which nothing is embedded.
  public var confirm: String?
  /// The most that embedding may cost, in US dollars; no limit unless given.
  public var maxCostUSD: Double?

  static let confirmation = "backfill"

  /// An order.
  public init(
    chatId: String? = nil,
    limit: Int? = nil,
    dryRun: Bool? = nil,
    confirm: String? = nil,
    maxCostUSD: Double? = nil
  ) {
    self.chatId = chatId
    self.limit = limit
    self.dryRun = dryRun
    self.confirm = confirm
    self.maxCostUSD = maxCostUSD
  }

  /// The order, if it makes sense; otherwise throws `invalid-argument` with what to change.
  func checked() throws -> BackfillEmbeddingsOrder {
    if dryRun == false, confirm != Self.confirmation {
      throw CallableError(
        .invalidArgument,
        #"A real run demands {"dryRun": false, "confirm": "\#(Self.confirmation)"}."#
      )
    }
    if let limit, limit < 1 {
      throw CallableError(.invalidArgument, "limit must be 1 or more.")
    }
    if let maxCostUSD, !(maxCostUSD.isFinite && maxCostUSD >= 0) {
      throw CallableError(.invalidArgument, "maxCostUSD must be a number of dollars, 0 or more.")
    }
    if let chatId, chatId.isEmpty || chatId.contains("/") {
      throw CallableError(.invalidArgument, "chatId must be the id of a chat.")
    }
    return self
  }
}

/// The answer of `backfillEmbeddings`.
public struct BackfillEmbeddingsReply: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public var dryRun: Bool
  /// Messages that this call looked at.
  public var scanned: Int
  /// Scanned messages without a vector that should have one.
  public var missing: Int
  /// Missing messages that now have a vector.
  public var embedded: Int
  /// Messages that need no vector.
  public var skipped: Int
  /// Messages that could not be embedded.
  public var failed: Int
  /// Tokens paid for, as the provider counted them, also for messages that failed; estimated for a
  /// dry run.
  public var tokens: Int
  /// What the tokens cost; null for a model whose price is not known.
  public var estimatedCostUSD: Double?
  /// Whether the call looked at every message.
  public var done: Bool
  /// Why the call ended early; null if it did not.
  public var stopped: String?

  init(_ report: BackfillReport) {
    dryRun = report.isDryRun
    scanned = report.scanned
    missing = report.missing
    embedded = report.embedded
    skipped = report.skipped
    failed = report.failed
    tokens = report.tokens
    estimatedCostUSD = report.estimatedCostUSD
    done = report.done
    stopped = report.stopped?.description
  }

  /// Writes every key, with null for a missing value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(scanned, forKey: .scanned)
    try container.encode(missing, forKey: .missing)
    try container.encode(embedded, forKey: .embedded)
    try container.encode(skipped, forKey: .skipped)
    try container.encode(failed, forKey: .failed)
    try container.encode(tokens, forKey: .tokens)
    try container.encode(estimatedCostUSD, forKey: .estimatedCostUSD)
    try container.encode(done, forKey: .done)
    try container.encode(stopped, forKey: .stopped)
  }

  private enum CodingKeys: String, CodingKey {
    case dryRun, scanned, missing, embedded, skipped, failed, tokens, estimatedCostUSD, done
    case stopped
  }
}
