package import DocumentModel

/// The state of one function's deliveries, and the outcomes of its attempts since the start.
package struct DeliveryFigures: Sendable, Hashable {
  package var pending = 0
  package var running = 0
  /// The commit time of the oldest event that runs or could run now; nil if there is none.
  package var oldest: Timestamp?
  /// The reason that blocks all deliveries of the function; nil if there is none.
  package var holdUp: WaitReason?
  /// The number of ended attempts, by the state of their delivery after the attempt.
  package var ends: [Delivery.State: Int]
  /// The number of deliveries that were never attempted, because they are part of a loop.
  package var stopped = 0

  /// Creates the figures of a function without pending deliveries.
  package init(ends: [Delivery.State: Int] = [:]) {
    self.ends = ends
  }
}
