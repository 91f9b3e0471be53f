/// The lane of a delivery, as a hash that is the same in every process.
///
/// Deliveries of one lane run one after the other. Two lanes whose hashes collide wait for each
/// other, which does no other harm.
struct DeliveryLane: Sendable, Hashable {
  var hash: UInt64

  init(hash: UInt64) {
    self.hash = hash
  }

  /// Returns the lane of a function's scheduled runs.
  static func schedule(of function: String) -> DeliveryLane {
    DeliveryLane(function, "schedule")
  }

  init(_ parts: String...) {
    // FNV-1a, because it needs no seed. A zero byte separates the parts.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for part in parts {
      for byte in part.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      hash = hash &* 0x100_0000_01B3
    }
    self.hash = hash
  }
}
