import FirestoreClient
import Logging

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The ledger that counts the usage of models, and enforces the limits of each day.
///
/// `usage/{uid}/days/{yyyy-MM-dd}` has a payer's `requests`, `tokens` and `costUSD`, and the same
/// three numbers for each model, by its name, in `byModel`. `usage/_app/days/{…}` has the sums of
/// all payers. A call first reserves the most that it can use, and afterwards its actual usage
/// replaces the reservation. The reserved parts of `tokens` and `costUSD` are in `reservedTokens`
/// and `reservedUSD`.
///
/// Each change is one commit of increments for payer and app, which returns the new sums. Each of
/// several concurrent calls therefore sees the earlier ones, and no lock is needed. A reservation
/// that exceeds a limit is undone. A worker that dies during a call leaves its reservation, so that
/// too much is counted rather than too little.
///
/// All payers share the app's document of the day. Increments without a precondition never conflict
/// with one another, but a document in production supports only about one write per second over
/// long periods. Above that, commits take longer and then fail as aborted. In that case no model is
/// called and events wait. A call takes about a second and has two commits, so one busy worker may
/// reach the limit and 16 certainly do. An app of that size should divide the sum over several
/// documents.
struct UsageLedger: Sendable {
  private let firestore: Firestore
  private let limits: UsageLimits
  private let now: @Sendable () -> Date
  private let refusals = UsageRefusals()

  /// The name of the ledger's collection, with a document for each payer.
  static let collection = "usage"
  /// The difference in dollars that is ignored as an inaccuracy of sums.
  private static let dollarsPrecision = 1e-9

  init(firestore: Firestore, limits: UsageLimits, now: @escaping @Sendable () -> Date) {
    self.firestore = firestore
    self.limits = limits
    self.now = now
  }

  /// Calls a model, if the limits allow the most that the call can use.
  ///
  /// `call` adds the usage to its argument, also if it throws. Attempts within `call` count as one
  /// request. A failed call without usage is not counted. After a cancellation the reservation
  /// stays, unless `call` has estimated the usage.
  ///
  /// Throws any error of `call`. Without calling the model, throws `limitReached`, or `unavailable`
  /// if the ledger cannot be written.
  func count<Output>(
    _ model: PricedModel,
    for payer: Payer,
    atMost most: TokenUsage,
    _ call: (inout TokenUsage) async throws -> Output
  ) async throws -> Output {
    let entry = Entry(day: UsageDay(of: now()), payer: payer, model: model.name)
    var reserved = Amount(requests: 1, model.price, most)
    reserved.reserve()
    try await reserve(reserved, in: entry)
    var used = TokenUsage()
    do {
      let output = try await call(&used)
      await correct(entry, by: Amount(requests: 1, model.price, used) - reserved)
      return output
    } catch let error as CancellationError {
      if used.totalTokens > 0 {
        await correct(entry, by: Amount(requests: 1, model.price, used) - reserved)
      }
      throw error
    } catch {
      let requests = used.totalTokens == 0 ? 0 : 1
      await correct(entry, by: Amount(requests: requests, model.price, used) - reserved)
      guard var error = error as? ServiceError else { throw error }
      error.usage = used
      throw error
    }
  }

  /// Throws `limitReached` if a call would, as far as known without the database.
  func check(_ payer: Payer) throws {
    let day = UsageDay(of: now())
    try checkSwitch(on: day)
    try refusals.check(payer, tokens: 0, dollars: 0, on: day, now: now())
  }

  // MARK: Reserving

  private func checkSwitch(on day: UsageDay) throws {
    guard limits.dollarsPerDay > 0 else {
      let reason = "PSST_DOLLARS_PER_DAY is 0, so that no model is called"
      throw refusals.add(
        UsageRefusals.Refusal(payer: .app, reason: reason, size: 0, isSpent: true),
        on: day,
        now: now()
      )
    }
  }

  private func reserve(_ amount: Amount, in entry: Entry) async throws {
    try checkSwitch(on: entry.day)
    try refusals.check(
      entry.payer,
      tokens: amount.tokens,
      dollars: amount.dollars,
      on: entry.day,
      now: now()
    )
    let sums: Sums
    do {
      sums = try await add(amount, to: entry)
    } catch let error as FirestoreError {
      throw ServiceError(.unavailable, "the ledger of model calls cannot be written: \(error)")
    }
    guard let refusal = refusal(of: amount, sums) else { return }
    await correct(entry, by: Amount() - amount)
    throw refusals.add(refusal, on: entry.day, now: now())
  }

  /// Returns a refusal if the sums exceed a limit; nil otherwise.
  private func refusal(of amount: Amount, _ sums: Sums) -> UsageRefusals.Refusal? {
    if let payer = sums.payer, payer.tokens > limits.userTokensPerDay {
      return UsageRefusals.Refusal(
        payer: sums.entry.payer,
        reason: "the user's calls of today would use more than PSST_USER_TOKENS_PER_DAY",
        size: Double(amount.tokens),
        isSpent: payer.tokens - payer.reservedTokens >= limits.userTokensPerDay
      )
    }
    if sums.app.dollars > limits.dollarsPerDay + Self.dollarsPrecision {
      return UsageRefusals.Refusal(
        payer: .app,
        reason: "all calls of today would cost more than PSST_DOLLARS_PER_DAY",
        size: amount.dollars,
        isSpent: sums.app.dollars - sums.app.reservedDollars >= limits.dollarsPerDay
      )
    }
    return nil
  }

  /// Adds a difference to the sums.
  ///
  /// A failure leaves the sums too high, rarely too low.
  private func correct(_ entry: Entry, by difference: Amount) async {
    guard difference != Amount() else { return }
    // This function waits for the task. A separate task lets the usage of a cancelled call be
    // corrected. The commit has a timeout.
    await Task {
      do {
        _ = try await add(difference, to: entry)
      } catch {
        Logger.current.warning(
          "A call of a model stays counted as the most it could use",
          metadata: ["reason": "\(error)"]
        )
      }
    }.value
  }

  // MARK: The documents

  /// The key of an entry: one payer's calls of one model on one day.
  private struct Entry: Sendable {
    var day: UsageDay
    var payer: Payer
    var model: String
  }

  /// The amount added to the sums.
  private struct Amount: Sendable, Hashable {
    var requests = 0
    var tokens = 0
    var dollars = 0.0
    /// The reserved part of the tokens and dollars.
    var reservedTokens = 0
    var reservedDollars = 0.0

    init() {}

    /// Marks the whole amount as reserved.
    mutating func reserve() { (reservedTokens, reservedDollars) = (tokens, dollars) }

    init(requests: Int, _ price: ModelPrice?, _ usage: TokenUsage) {
      self.requests = requests
      tokens = usage.totalTokens
      dollars = price?.dollars(usage) ?? 0
    }

    static func - (left: Amount, right: Amount) -> Amount {
      var difference = left
      difference.requests -= right.requests
      difference.tokens -= right.tokens
      difference.dollars -= right.dollars
      difference.reservedTokens -= right.reservedTokens
      difference.reservedDollars -= right.reservedDollars
      return difference
    }

    func fields(of model: String) -> [String: FieldValue] {
      [
        "requests": .increment(requests), "tokens": .increment(tokens),
        "costUSD": .increment(dollars), "reservedTokens": .increment(reservedTokens),
        "reservedUSD": .increment(reservedDollars),
        // A map's key is a name, not a path, whatever characters it contains.
        "byModel": [
          model: [
            "requests": .increment(requests), "tokens": .increment(tokens),
            "costUSD": .increment(dollars),
          ]
        ],
      ]
    }
  }

  /// The sums after a commit; the payer's are nil if the app is the payer.
  private struct Sums {
    var entry: Entry
    var payer: Sum?
    var app: Sum
  }

  private struct Sum {
    var tokens: Int
    var dollars: Double
    var reservedTokens: Int
    var reservedDollars: Double
  }

  private func add(_ amount: Amount, to entry: Entry) async throws -> Sums {
    var batch = firestore.batch()
    for id in [entry.payer.uid, Payer.appID].compactMap(\.self) {
      let days = firestore.collection(Self.collection).document(id).collection("days")
      try batch.set(days.document(entry.day.name), amount.fields(of: entry.model), .merge)
    }
    let sums = try await batch.commit().writeResults.map { try Self.sums($0) }
    guard let app = sums.last, sums.count == batch.count else {
      throw FirestoreError(.internal, "the server did not answer for each write")
    }
    return Sums(entry: entry, payer: sums.count == 2 ? sums[0] : nil, app: app)
  }

  /// Reads the sums from the results of the increments.
  ///
  /// The results are in the order of the fields' paths: first those below `byModel`, then
  /// `costUSD`, `requests`, `reservedTokens`, `reservedUSD` and `tokens`.
  private static func sums(_ result: WriteResult) throws -> Sum {
    let results = result.transformResults
    guard results.count == 8, case .double(let dollars) = results[3],
      case .integer(let reservedTokens) = results[5], case .double(let reserved) = results[6],
      case .integer(let tokens) = results[7]
    else { throw FirestoreError(.internal, "the server did not answer with the new sums") }
    return Sum(
      tokens: Int(tokens),
      dollars: dollars,
      reservedTokens: Int(reservedTokens),
      reservedDollars: reserved
    )
  }
}

/// A model with its price, for the ledger.
struct PricedModel: Sendable {
  /// The name under which the ledger counts the model.
  var name: String
  /// The price; nil if unknown, and then no dollars are counted.
  var price: ModelPrice?
}
