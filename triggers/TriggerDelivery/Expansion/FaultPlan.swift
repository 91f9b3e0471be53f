/// The faults that delivery puts into events on purpose, decided by a seed.
///
/// Whether an event is dropped, doubled or late depends on the seed, the function and what the
/// event is about, so the same writes meet the same faults, whatever runs beside them.
package struct FaultPlan: Sendable, Hashable, Codable {
  package var seed: UInt64
  /// The share of events that reach their function once more, from 0 to 1.
  package var duplicates: Double
  /// Whether events of one document may overtake each other.
  package var reordering: Bool
  /// The share of events whose first try is lost, so that they come later; from 0 to 1.
  package var drops: Double

  /// Faults of these kinds; without any, events are delivered as usual.
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

  /// Whether the first try of a delivery is to be lost.
  package func drops(_ delivery: Delivery) -> Bool { share(of: delivery, "drop") < drops }

  /// Whether a delivery is to come once more after its success.
  package func repeats(_ delivery: Delivery) -> Bool {
    share(of: delivery, "repeat") < duplicates
  }

  /// How much later a new delivery is due.
  func delay(of delivery: Delivery) -> Duration {
    guard reordering else { return .zero }
    // The events of one document need different delays, so this share depends on the event's id.
    let share = share(of: delivery, "delay \(delivery.id.eventID)")
    return .milliseconds(Int(share * Self.delayMilliseconds))
  }

  /// A number from 0 to 1 that belongs to the delivery.
  private func share(of delivery: Delivery, _ purpose: String) -> Double {
    let name = DeliveryLane(delivery.id.function, delivery.kind, delivery.subject, purpose)
    var hash = name.hash &+ seed
    hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
    hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
    return Double((hash ^ (hash >> 31)) >> 11) * 0x1p-53
  }

  private static let delayMilliseconds = 200.0
}
