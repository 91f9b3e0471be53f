/// How many deliveries of each function every root event has caused in circles that spread.
///
/// Counted in memory alone: a loop that outlives a restart is stopped at the bound once more.
struct SpreadCounts: Sendable {
  private struct Key: Hashable, Sendable {
    var root: EventPlace
    var function: String
  }

  private var counts: [Key: Int] = [:]
  /// Roots and functions that are counted at one time; beyond it the lesser half is forgotten.
  private static let keysMax = 4096

  /// Counts one more, and returns how many there are.
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
