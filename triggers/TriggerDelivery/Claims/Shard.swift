import DocumentModel

/// A part of all deliveries that one dispatcher at a time can claim.
///
/// All deliveries of a lane belong to one shard, so the shard's owner knows which of them is first.
struct Shard: Sendable, Hashable {
  var number: UInt8

  /// The number of shards, which is also the maximum number of dispatchers that can share the work.
  static let count: UInt8 = 16

  /// The claim that the event expander needs; no delivery belongs to it.
  static let expansion = Shard(count)

  static let all = (0..<count).map { Shard($0) }

  init(_ number: UInt8) {
    self.number = number
  }

  init(of delivery: Delivery) {
    self.init(lane: delivery.lane, place: delivery.id.place)
  }

  /// Computes the shard of an encoded row; `place` is the event's encoded position.
  init(ofRow row: [UInt8], place: ArraySlice<UInt8>) throws(CorruptDataError) {
    self.init(lane: try Delivery.lane(of: row), place: try DeliveryStore.place(place))
  }

  private init(lane: DeliveryLane?, place: EventPlace) {
    let hash = lane?.hash ?? place.sequence &* 31 &+ UInt64(place.index)
    number = UInt8(truncatingIfNeeded: (hash ^ (hash >> 32)) % UInt64(Self.count))
  }
}

struct ShardSet: Sendable, Hashable {
  private var bits: UInt16

  static let none = ShardSet(bits: 0)
  static let all = ShardSet(bits: .max)

  private init(bits: UInt16) {
    self.bits = bits
  }

  /// Creates the set of those shards that hold deliveries; the expansion claim is left out.
  init(_ shards: some Sequence<Shard>) {
    bits = shards.reduce(0) { $1 == .expansion ? $0 : $0 | 1 << UInt16($1.number) }
  }

  var isFull: Bool { bits == .max }

  func isSubset(of other: ShardSet) -> Bool { bits & ~other.bits == 0 }

  func contains(_ shard: Shard) -> Bool { bits >> UInt16(shard.number) & 1 == 1 }
}
