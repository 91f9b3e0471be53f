import DequeModule

/// The selection of failed and dead deliveries that are kept: a value that decides and never acts.
///
/// Each function has its own bounds, by number and by the bytes of the events, so that one
/// function's failures never push out another's. A bound for all functions together takes from the
/// functions that have most. The oldest deliveries of a function, by the time of their failure, are
/// dropped first.
struct FailedShares: Sendable {
  /// A maximum number of deliveries, and of bytes of their events.
  struct Bound: Sendable {
    var count: Int
    var bytes: Int

    static func * (bound: Bound, factor: Int) -> Bound {
      Bound(count: bound.count * factor, bytes: bound.bytes * factor)
    }
  }

  private struct Row: Sendable {
    var place: EventPlace
    var stamp: UInt64
  }

  private struct Share: Sendable {
    var rows: [EventPlace: (bytes: Int, stamp: UInt64)] = [:]
    /// All rows in the order in which they failed, and some that have been removed.
    var order: Deque<Row> = []
    var bytes = 0
  }

  private let each: Bound
  private let all: Bound
  private var shares: [String: Share] = [:]
  private var stamp: UInt64 = 0

  init(each: Bound, all: Bound) {
    self.each = each
    self.all = all
  }

  /// Returns the number of a function's kept deliveries, and the bytes of their events.
  func kept(of function: String) -> Bound {
    let share = shares[function]
    return Bound(count: share?.rows.count ?? 0, bytes: share?.bytes ?? 0)
  }

  /// Indicates whether a delivery is kept.
  func contains(_ id: DeliveryID) -> Bool { shares[id.function]?.rows[id.place] != nil }

  /// Adds a delivery that has failed, as the newest or, if `isOldest` is true, as the oldest.
  mutating func add(_ id: DeliveryID, bytes size: Int, isOldest: Bool = false) {
    remove(id)
    stamp += 1
    // The share is taken out of the dictionary, so that changing it does not copy it.
    var share = shares.removeValue(forKey: id.function) ?? Share()
    share.rows[id.place] = (size, stamp)
    let row = Row(place: id.place, stamp: stamp)
    if isOldest { share.order.prepend(row) } else { share.order.append(row) }
    share.bytes += size
    if share.order.count > 2 * share.rows.count + 16 {
      share.order.removeAll { share.rows[$0.place]?.stamp != $0.stamp }
    }
    shares[id.function] = share
  }

  /// Removes a delivery that is no longer kept.
  mutating func remove(_ id: DeliveryID) {
    guard var share = shares.removeValue(forKey: id.function) else { return }
    if let row = share.rows.removeValue(forKey: id.place) {
      share.bytes -= row.bytes
    }
    if !share.rows.isEmpty { shares[id.function] = share }
  }

  /// Removes deliveries beyond the bounds, the oldest of each function first; at most `limit`.
  mutating func takeSurplus(limit: Int) -> [String: [EventPlace]] {
    let countMax = level(shares.values.map(\.rows.count), sum: all.count, each.count)
    let bytesMax = level(shares.values.map(\.bytes), sum: all.bytes, each.bytes)
    var surplus: [String: [EventPlace]] = [:]
    var left = limit
    for (function, share) in shares where left > 0 {
      guard share.rows.count > countMax || share.bytes > bytesMax else { continue }
      let places = takeOldest(of: function, to: Bound(count: countMax, bytes: bytesMax), left)
      if !places.isEmpty { surplus[function] = places }
      left -= places.count
    }
    return surplus
  }

  /// Removes the oldest deliveries of a function beyond a bound.
  ///
  /// The newest one stays, regardless of its size: developers look for a function's last failure.
  private mutating func takeOldest(
    of function: String,
    to bound: Bound,
    _ limit: Int
  ) -> [EventPlace] {
    guard var share = shares.removeValue(forKey: function) else { return [] }
    var places: [EventPlace] = []
    while places.count < limit,
      share.rows.count > bound.count || share.bytes > bound.bytes && share.rows.count > 1,
      let oldest = share.order.popFirst()
    {
      guard let row = share.rows[oldest.place], row.stamp == oldest.stamp else { continue }
      share.rows[oldest.place] = nil
      share.bytes -= row.bytes
      places.append(oldest.place)
    }
    if !share.rows.isEmpty { shares[function] = share }
    return places
  }

  /// Returns the greatest bound per function, up to `most`, that keeps the total within `sum`.
  private func level(_ values: [Int], sum: Int, _ most: Int) -> Int {
    func total(_ bound: Int) -> Int { values.reduce(0) { $0 + min($1, bound) } }
    guard total(most) > sum else { return most }
    var (low, high) = (0, most)
    while high - low > 1 {
      let middle = (low + high) / 2
      if total(middle) > sum { high = middle } else { low = middle }
    }
    return max(1, low)
  }
}
