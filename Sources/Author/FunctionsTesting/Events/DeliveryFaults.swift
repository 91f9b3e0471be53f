import TriggerDelivery

/// Faults that delivery may put into events, put there on purpose.
///
/// With faults, events wait for `settle()`, which then delivers them one at a time in an order that
/// the seed decides. Equal functions, writes and seed give an equal order, so a failure can be
/// repeated:
///
/// ```swift
/// @Test(arguments: UInt64(0)..<20)
/// func survivesDelivery(seed: UInt64) async throws {
///   try await withFunctions(countUsers, deliveryFaults: DeliveryFaults(seed: seed)) { suite in … }
/// }
/// ```
public struct DeliveryFaults: Sendable, Hashable {
  /// The seed, which decides order and number.
  public var seed: UInt64
  /// Whether each event that a function has handled well reaches it once or twice more.
  ///
  /// This happens when the word of a function's success is lost.
  public var duplicates: Bool
  /// Whether any waiting event may come next, of any document; otherwise the oldest does.
  public var reordering: Bool
  /// Whether some events lose their first try.
  ///
  /// The try does not reach the function, and the event comes half a second later by the suite's
  /// clock.
  public var drops: Bool

  /// Faults of these kinds.
  public init(
    seed: UInt64,
    duplicates: Bool = true,
    reordering: Bool = true,
    drops: Bool = true
  ) {
    self.seed = seed
    self.duplicates = duplicates
    self.reordering = reordering
    self.drops = drops
  }

  /// No faults: events wait for `settle()` and then come once, in order and one at a time.
  public static let inOrder = DeliveryFaults(
    seed: 0,
    duplicates: false,
    reordering: false,
    drops: false
  )

  /// The faults that the deliveries themselves apply; the suite applies the others.
  var plan: FaultPlan { FaultPlan(seed: seed, drops: drops ? Self.dropped : 0) }

  /// The share of events whose first try is lost.
  private static let dropped = 0.25
}

/// Decides what a suite with faults delivers next.
struct FaultyOrder: Sendable {
  private let faults: DeliveryFaults
  private var generator: SplitMix
  private var duplicatesLeft: [DeliveryID: Int] = [:]

  init(_ faults: DeliveryFaults) {
    self.faults = faults
    generator = SplitMix(state: faults.seed)
  }

  /// One of the deliveries that could start, which are ordered by id.
  mutating func next(of startable: [DeliveryID]) -> DeliveryID? {
    faults.reordering ? startable.randomElement(using: &generator) : startable.first
  }

  /// Whether a delivery that succeeded must come once more.
  mutating func repeats(_ id: DeliveryID) -> Bool {
    guard faults.duplicates else { return false }
    let left = duplicatesLeft[id] ?? Int.random(in: 1...2, using: &generator)
    duplicatesLeft[id] = max(0, left - 1)
    return left > 0
  }
}

/// Numbers that a seed repeats, on every platform.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
