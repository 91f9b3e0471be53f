import DocumentModel

/// The identifier of a delivery; it is stable across redeliveries and restarts.
package struct DeliveryID: Sendable, Hashable {
  package var sequence: UInt64
  package var changeIndex: UInt32
  package var function: String

  /// Identifies the delivery of one event of a commit to a function.
  ///
  /// The indices of occurrences follow those of the commit's changes.
  package init(sequence: UInt64, changeIndex: UInt32, function: String) {
    self.sequence = sequence
    self.changeIndex = changeIndex
    self.function = function
  }

  init(_ place: EventPlace, _ function: String) {
    self.init(sequence: place.sequence, changeIndex: place.index, function: function)
  }

  /// The CloudEvents id, which is the same for every function that receives the event.
  package var eventID: String { "\(sequence).\(changeIndex)" }

  var place: EventPlace { EventPlace(sequence: sequence, index: changeIndex) }
}

extension DeliveryID: CustomStringConvertible, LosslessStringConvertible, Comparable {
  package var description: String { "\(eventID).\(function)" }

  /// Parses the format of `description`; nil if malformed.
  package init?(_ description: String) {
    let parts = description.split(separator: ".", maxSplits: 2)
    guard parts.count == 3, let sequence = UInt64(parts[0]), let index = UInt32(parts[1]) else {
      return nil
    }
    self.init(sequence: sequence, changeIndex: index, function: String(parts[2]))
  }

  package static func < (left: DeliveryID, right: DeliveryID) -> Bool {
    (left.sequence, left.changeIndex, left.function)
      < (right.sequence, right.changeIndex, right.function)
  }
}

/// The delivery that caused an event, and the length of the chain of causes up to it.
///
/// It travels with the work of a function (see `EventCause`), so a chain keeps its length when the
/// rows of its earlier deliveries are trimmed.
package struct DeliveryCause: Sendable, Hashable {
  package var id: DeliveryID
  /// The number of deliveries before this one in its chain.
  package var depth: Int

  /// Creates the cause of an event from a delivery and its depth.
  package init(id: DeliveryID, depth: Int) {
    self.id = id
    self.depth = depth
  }
}

extension DeliveryCause: CustomStringConvertible, LosslessStringConvertible {
  /// `{delivery's id};{depth}`, for headers.
  ///
  /// Names of functions contain no semicolon.
  package var description: String { "\(id);\(depth)" }

  /// Parses the format of `description`; nil if malformed.
  ///
  /// Also accepts a delivery's id alone. A trace may follow in either case.
  package init?(_ description: String) {
    let parts = description.split(separator: ";", omittingEmptySubsequences: false)
    guard let first = parts.first, let id = DeliveryID(String(first)) else { return nil }
    let depth = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    self.init(id: id, depth: min(max(depth, 0), Self.depthMax))
  }

  /// The maximum depth, far beyond the longest chain that runs.
  ///
  /// A header with a greater depth does not come from this server; its depth is clamped.
  private static let depthMax = 1_000_000
}
