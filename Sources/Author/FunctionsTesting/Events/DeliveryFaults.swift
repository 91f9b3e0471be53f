import TriggerDelivery

/// The delivery faults that a suite introduces on purpose.
///
/// With faults, events wait for `settle()`, which delivers them one at a time in an order that the
/// seed determines. The same functions, writes and seed produce the same order, so that a failure
/// can be reproduced:
///
/// ```swift
/// @Test(arguments: UInt64(0)..<20)
/// func survivesDelivery(seed: UInt64) async throws {
///   try await withFunctions(countUsers, deliveryFaults: DeliveryFaults(seed: seed)) { suite in … }
/// }
/// ```
public struct DeliveryFaults: Sendable, Hashable {
  /// The seed, which determines the order of the events and the number of duplicates.
  public var seed: UInt64
  /// True to deliver each successfully handled event once or twice more.
  ///
  /// In production this happens when the confirmation of a success is lost.
  public var duplicates: Bool
  /// True to choose any pending event as the next, of any document.
  ///
  /// Otherwise the oldest is next.
  public var reordering: Bool
  /// True to drop the first attempt of some events.
  ///
  /// A dropped attempt does not reach the function. The event is delivered half a second later by
  /// the suite's clock.
  public var drops: Bool

  /// Creates faults, with all kinds enabled by default.
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

  /// No faults: events wait for `settle()`, which delivers each once, in order and one at a time.
  public static let inOrder = DeliveryFaults(
    seed: 0,
    duplicates: false,
    reordering: false,
    drops: false
  )

  /// The faults that the delivery service applies itself.
  ///
  /// The suite applies the others.
  var plan: FaultPlan { FaultPlan(seed: seed, drops: drops ? Self.dropped : 0) }

  /// The share of events whose first attempt is dropped.
  private static let dropped = 0.25
}

/// The choice of the next delivery in a suite with faults.
struct FaultyOrder: Sendable {
  private let faults: DeliveryFaults
  private var generator: SplitMix
  private var duplicatesLeft: [DeliveryID: Int] = [:]

  init(_ faults: DeliveryFaults) {
    self.faults = faults
    generator = SplitMix(state: faults.seed)
  }

  /// Returns the next of the deliveries that can start, which are ordered by id.
  mutating func next(of startable: [DeliveryID]) -> DeliveryID? {
    faults.reordering ? startable.randomElement(using: &generator) : startable.first
  }

  /// Returns true if a delivery that succeeded must be repeated.
  mutating func repeats(_ id: DeliveryID) -> Bool {
    guard faults.duplicates else { return false }
    let left = duplicatesLeft[id] ?? Int.random(in: 1...2, using: &generator)
    duplicatesLeft[id] = max(0, left - 1)
    return left > 0
  }
}

/// A generator that produces the same numbers for the same seed on every platform.
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
