import DequeModule

/// The most recent records, decoded once for all followers.
///
/// This is the tailer's state as a value.
struct EventRing {
  /// The result of reading the ring for a follower.
  enum Reading {
    /// At least one entry.
    case entries([EventEntry])
    /// The follower has received all records so far.
    case nothingYet
    /// Records that the follower needs are no longer in the ring.
    case tooOld
  }

  private var entries: Deque<EventEntry> = []
  private var bytes = 0
  private let countMax: Int
  private let bytesMax: Int
  /// The sequence before the ring.
  ///
  /// The ring holds all records after it, up to `through`.
  private var floor: UInt64
  private(set) var through: UInt64

  /// Creates an empty ring that begins after `sequence`.
  init(after sequence: UInt64, countMax: Int, bytesMax: Int) {
    floor = sequence
    through = sequence
    self.countMax = countMax
    self.bytesMax = bytesMax
  }

  /// Adds the next records of the log, up to `through`, and drops the oldest above the limits.
  mutating func append(_ new: [EventEntry], through: UInt64) {
    for entry in new {
      entries.append(entry)
      bytes += entry.bytes
    }
    self.through = max(self.through, through)
    while entries.count > countMax || bytes > bytesMax, let oldest = entries.popFirst() {
      bytes -= oldest.bytes
      floor = oldest.record.sequence
    }
  }

  /// Returns at most `limit` entries after `sequence`.
  func read(after sequence: UInt64, limit: Int) -> Reading {
    guard sequence >= floor else { return .tooOld }
    // Sequences increase, so a binary search finds the first entry after `sequence`.
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].record.sequence <= sequence { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count else { return .nothingYet }
    return .entries(Array(entries[low..<min(low + limit, entries.count)]))
  }
}
