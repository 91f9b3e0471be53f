/// The limits on deliveries in a function's window that cannot run yet.
///
/// In each lane only the first delivery runs. The deliveries behind it are in the window to avoid
/// one load from storage for each of them. Without a limit, one document with many events would
/// fill the window and hold up the events of all other documents. Deliveries beyond the limits are
/// parked: they wait in storage by lane.
struct LaneShare: Sendable {
  /// The number of deliveries that the window can hold.
  let windowMax: Int

  /// The maximum number of deliveries of one lane: enough to load a lane in batches.
  var laneMax: Int { max(4, windowMax / 16) }

  /// The length of a lane's line at which its next deliveries are loaded.
  var laneMin: Int { laneMax / 2 }

  /// The maximum number of deliveries behind others, in all lanes.
  ///
  /// The other half of the window suffices for all deliveries that may run at once.
  var blockedMax: Int { windowMax / 2 }

  /// The maximum size of the events of these blocked deliveries, in bytes.
  ///
  /// It is half of a function's share when memory is short.
  static let blockedBytesMax = 1 << 19

  /// Indicates whether one more delivery may stand behind `count` deliveries of its lane.
  func takes(behind count: Int, blocked: Int, blockedBytes: Int) -> Bool {
    count == 0
      || count < laneMax && blocked < blockedMax && blockedBytes < Self.blockedBytesMax
  }
}

/// The lanes of a window while a load fills it.
struct LaneCapacity: Sendable {
  /// The deliveries of one lane in the window.
  struct Line: Sendable {
    var count: Int
    var last: EventPlace
  }

  let share: LaneShare
  private var lines: [DeliveryLane: Line]
  private var blocked: Int
  private var blockedBytes: Int

  init(
    _ share: LaneShare,
    lines: [DeliveryLane: Line] = [:],
    blocked: Int = 0,
    blockedBytes: Int = 0
  ) {
    self.share = share
    self.lines = lines
    self.blocked = blocked
    self.blockedBytes = blockedBytes
  }

  /// Returns the number of deliveries of a lane in the window.
  func count(_ lane: DeliveryLane) -> Int { lines[lane]?.count ?? 0 }

  /// Indicates whether a delivery of a lane may enter the window.
  ///
  /// A delivery that comes before another delivery of its lane may always enter.
  func takes(_ lane: DeliveryLane, _ place: EventPlace) -> Bool {
    guard let line = lines[lane], place > line.last else { return true }
    return share.takes(behind: line.count, blocked: blocked, blockedBytes: blockedBytes)
  }

  /// Records that a delivery enters the window.
  mutating func add(_ lane: DeliveryLane, _ place: EventPlace, bytes: Int) {
    let line = lines[lane]
    if line != nil {
      blocked += 1
      blockedBytes += bytes
    }
    lines[lane] = Line(count: (line?.count ?? 0) + 1, last: max(line?.last ?? place, place))
  }
}
