import FunctionsRuntime
import PsstModels
import PsstBackend

/// The order for `backfillEmbeddings` and `backfillProfiles`.
public struct BackfillOrder: Codable, Sendable, Hashable {
  /// The id of the one chat to process; all chats if nil.
  public var chatId: String?
  /// The maximum number of messages to embed or to read; no limit if nil.
  public var limit: Int?
  /// True to count only; true if nil.
  public var dryRun: Bool?
  /// The word `backfill`, required for a real run.
  public var confirm: String?
  /// The maximum cost in US dollars; no limit if nil.
  public var maxCostUSD: Double?

  /// Creates an order with default values for all parameters that are left out.
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

  /// Returns the order and whether its run is dry.
  ///
  /// Throws `invalid-argument`, with the reason, if the order is not valid.
  func checked() throws -> (order: BackfillOrder, isDry: Bool) {
    let isDry = try AppFunctions.isDry(dryRun, confirmedBy: confirm, "backfill")
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
  /// Logs the end of a backfill, and each error that a person should look at.
  func log(end report: BackfillReport, of work: String, metadata: Metadata = [:]) {
    for reason in report.errors {
      warning("A backfill left messages out", metadata: ["reason": "\(reason)"])
    }
    info("\(work) ended", metadata: report.metadata.merging(metadata) { $1 })
  }
}

extension BackfillReport {
  /// The report's fields as log metadata.
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
