/// The number of deliveries that each root event has caused in spreading loops, by function.
///
/// The counts are in memory only. A loop that survives a restart is stopped once it reaches the
/// bound again.
struct SpreadCounts: Sendable {
  private struct Key: Hashable, Sendable {
    var root: EventPlace
    var function: String
  }

  private var counts: [Key: Int] = [:]
  /// The maximum number of counted pairs of root and function.
  ///
  /// Beyond it, the half with the smaller counts is forgotten.
  private static let keysMax = 4096

  /// Counts one more delivery and returns the new count.
  mutating func add(_ root: EventPlace, _ function: String) -> Int {
    let key = Key(root: root, function: function)
    if counts.count >= Self.keysMax, counts[key] == nil {
      let most = counts.sorted { $0.value > $1.value }.prefix(Self.keysMax / 2)
      counts = Dictionary(uniqueKeysWithValues: most.map { ($0.key, $0.value) })
    }
    counts[key, default: 0] += 1
    return counts[key, default: 0]
  }
}
