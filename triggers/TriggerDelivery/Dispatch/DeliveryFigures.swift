package import DocumentModel

/// How the deliveries of one function stand, and what became of its tries since the start.
package struct DeliveryFigures: Sendable, Hashable {
  package var pending = 0
  package var running = 0
  /// When the oldest event was recorded that runs or could run now; nil when none does.
  package var oldest: Timestamp?
  /// What holds up all deliveries of the function; nil when nothing does.
  package var holdUp: WaitReason?
  /// Tries that ended, by the state that they left their delivery in.
  package var ends: [Delivery.State: Int]
  /// Deliveries that were never tried, because they are part of a loop.
  package var stopped = 0

  /// Those of a function without events, whose tries have ended so.
  package init(ends: [Delivery.State: Int] = [:]) {
    self.ends = ends
  }
}
