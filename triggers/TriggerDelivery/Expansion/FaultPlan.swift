/// The faults that are injected into event delivery on purpose, determined by a seed.
///
/// An event is dropped, duplicated or delayed depending on the seed, the function and the event's
/// subject. The same writes therefore meet the same faults, regardless of concurrent work.
package struct FaultPlan: Sendable, Hashable, Codable {
  package var seed: UInt64
  /// The share of events that are delivered to their function twice, from 0 to 1.
  package var duplicates: Double
  /// True if events of one document may overtake each other.
  package var reordering: Bool
  /// The share of events whose first attempt is lost, so that they arrive later; from 0 to 1.
  package var drops: Double

  /// Creates a plan with faults of the given kinds; without any, events are delivered as usual.
  package init(
    seed: UInt64,
    duplicates: Double = 0,
    reordering: Bool = false,
    drops: Double = 0
  ) {
    self.seed = seed
    self.duplicates = duplicates
    self.reordering = reordering
    self.drops = drops
  }

  /// Indicates whether the first attempt of a delivery is to be lost.
  package func drops(_ delivery: Delivery) -> Bool { share(of: delivery, "drop") < drops }

  /// Indicates whether a delivery is to be repeated after its success.
  package func repeats(_ delivery: Delivery) -> Bool {
    share(of: delivery, "repeat") < duplicates
  }

  /// Returns the time by which a new delivery is delayed.
  func delay(of delivery: Delivery) -> Duration {
    guard reordering else { return .zero }
    // The events of one document need different delays, so this share depends on the event's id.
    let share = share(of: delivery, "delay \(delivery.id.eventID)")
    return .milliseconds(Int(share * Self.delayMilliseconds))
  }

  /// Returns a number from 0 to 1 that is determined by the delivery, the seed and the purpose.
  private func share(of delivery: Delivery, _ purpose: String) -> Double {
    let name = DeliveryLane(delivery.id.function, delivery.kind, delivery.subject, purpose)
    var hash = name.hash &+ seed
    hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
    return Double((hash ^ (hash >> 31)) >> 11) * 0x1p-53
  }

  private static let delayMilliseconds = 200.0
}
