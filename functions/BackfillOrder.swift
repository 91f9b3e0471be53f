import FunctionsRuntime
import PsstModels
import PsstServices

/// The order for `backfillEmbeddings` and `backfillProfiles`.
public struct BackfillOrder: Codable, Sendable, Hashable {
  /// One chat to look at; all chats unless given.
  public var chatId: String?
  /// The most messages to embed or to read; no limit unless given.
  public var limit: Int?
  /// Whether only to count; true unless given.
  public var dryRun: Bool?
  /// `backfill`, without which nothing is written.
  public var confirm: String?
  /// The most that it may cost, in US dollars; no limit unless given.
  public var maxCostUSD: Double?

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

  /// The order and whether its run is dry, if it makes sense.
  ///
  /// Otherwise throws `invalid-argument` with what to change.
  func checked() throws -> (order: BackfillOrder, isDry: Bool) {
    let isDry = try MessageFunctions.isDry(dryRun, confirmedBy: confirm, "backfill")
    if let limit, limit < 1 {
      throw CallableError(.invalidArgument, "limit must be 1 or more.")
    }
    if let maxCostUSD, !(maxCostUSD.isFinite && maxCostUSD >= 0) {
      throw CallableError(.invalidArgument, "maxCostUSD must be a number of dollars, 0 or more.")
    }
    if let chatId, !chatId.isDocumentID {
      throw CallableError(.invalidArgument, "chatId must be the id of a chat.")
    }
    return (self, isDry)
  }
}

extension Logger {
  /// Logs the end of a backfill, with what a person should look at.
  func log(end report: BackfillReport, of work: String, metadata: Metadata = [:]) {
    for reason in report.errors {
      warning("A backfill left messages out", metadata: ["reason": "\(reason)"])
    }
    info("\(work) ended", metadata: report.metadata.merging(metadata) { $1 })
  }
}

extension BackfillReport {
  /// The report, for logs.
  var metadata: Logger.Metadata {
    [
      "backfill.dry": "\(dryRun)", "backfill.scanned": "\(scanned)",
      "backfill.missing": "\(missing)", "backfill.embedded": "\(embedded)",
      "backfill.skipped": "\(skipped)", "backfill.failed": "\(failed)",
      "backfill.tokens": "\(tokens)", "backfill.done": "\(done)",
      "backfill.cost": "\(estimatedCostUSD.map { "\($0) USD" } ?? "unknown")",
      "backfill.stopped": "\(stopped ?? "no")",
    ]
  }
}
