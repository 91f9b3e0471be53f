/// How many deliveries that cannot run yet a function's window may hold.
///
/// Of one lane's deliveries only the first runs. The ones behind it are in the window to spare a
/// read from storage for each; were there no bound, one document with many events would fill the
/// window and hold up the events of all others. What finds no room is parked: it waits in storage
/// by lane.
struct LaneShare: Sendable {
  /// How many deliveries the window has.
  let windowMax: Int

  /// Deliveries of one lane: enough that a lane is read in batches.
  var laneMax: Int { max(4, windowMax / 16) }

  /// The length of a lane's line at which its next deliveries are read.
  var laneMin: Int { laneMax / 2 }

  /// Deliveries behind others, of all lanes: the other half suffices for all that may run at once.
  var blockedMax: Int { windowMax / 2 }

  /// Bytes of their events: half of what a function may have when memory is short.
  static let blockedBytesMax = 1 << 19

  /// Whether one more delivery may stand behind `count` of its lane.
  func takes(behind count: Int, blocked: Int, blockedBytes: Int) -> Bool {
    count == 0
      || count < laneMax && blocked < blockedMax && blockedBytes < Self.blockedBytesMax
  }
}

/// The lanes of a window as a read fills it.
struct LaneRoom: Sendable {
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

  /// How many deliveries of a lane there are.
  func count(_ lane: DeliveryLane) -> Int { lines[lane]?.count ?? 0 }

  /// Whether a delivery of a lane may enter; one that comes before another of its lane always may.
  func takes(_ lane: DeliveryLane, _ place: EventPlace) -> Bool {
    guard let line = lines[lane], place > line.last else { return true }
    return share.takes(behind: line.count, blocked: blocked, blockedBytes: blockedBytes)
  }

  /// Notes that a delivery enters.
  mutating func add(_ lane: DeliveryLane, _ place: EventPlace, bytes: Int) {
    let line = lines[lane]
    if line != nil {
      blocked += 1
      blockedBytes += bytes
    }
    lines[lane] = Line(count: (line?.count ?? 0) + 1, last: max(line?.last ?? place, place))
  }
}
