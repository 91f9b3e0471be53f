import DocumentModel

/// A share of all deliveries, of which one dispatcher at a time has the claim.
///
/// All deliveries of a lane belong to one shard, so whoever has the shard knows who is first.
struct Shard: Sendable, Hashable {
  var number: UInt8

  /// How many shards there are; no more dispatchers than that can share the work.
  static let count: UInt8 = 16

  /// What the expander of events must have; no delivery belongs to it.
  static let expansion = Shard(count)

  /// The shards of deliveries.
  static let all = (0..<count).map { Shard($0) }

  init(_ number: UInt8) {
    self.number = number
  }

  init(of delivery: Delivery) {
    self.init(lane: delivery.lane, place: delivery.id.place)
  }

  /// The shard of an encoded row with its place.
  init(ofRow row: [UInt8], place: ArraySlice<UInt8>) throws(CorruptDataError) {
    self.init(lane: try Delivery.lane(of: row), place: try DeliveryStore.place(place))
  }

  private init(lane: DeliveryLane?, place: EventPlace) {
    let hash = lane?.hash ?? place.sequence &* 31 &+ UInt64(place.index)
    number = UInt8(truncatingIfNeeded: (hash ^ (hash >> 32)) % UInt64(Self.count))
  }
}

/// Some of the shards.
struct ShardSet: Sendable, Hashable {
  private var bits: UInt16

  /// No shard.
  static let none = ShardSet(bits: 0)
  /// All shards.
  static let all = ShardSet(bits: .max)

  private init(bits: UInt16) {
    self.bits = bits
  }

  /// The shards of deliveries among these.
  init(_ shards: some Sequence<Shard>) {
    bits = shards.reduce(0) { $1 == .expansion ? $0 : $0 | 1 << UInt16($1.number) }
  }

  var isFull: Bool { bits == .max }

  func isSubset(of other: ShardSet) -> Bool { bits & ~other.bits == 0 }

  func contains(_ shard: Shard) -> Bool { bits >> UInt16(shard.number) & 1 == 1 }
}
