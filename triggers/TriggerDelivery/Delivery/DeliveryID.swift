/// The identifier of a delivery; it is stable across redeliveries and restarts.
package struct DeliveryID: Sendable, Hashable {
  var place: EventPlace
  package var function: String

  /// Identifies the delivery of one event of a commit to a function.
  ///
  /// The indices of occurrences follow those of the commit's changes.
  package init(sequence: UInt64, changeIndex: UInt32, function: String) {
    self.init(EventPlace(sequence: sequence, index: changeIndex), function)
  }

  init(_ place: EventPlace, _ function: String) {
    self.place = place
    self.function = function
  }

  package var sequence: UInt64 { place.sequence }

  /// The CloudEvents id, which is the same for every function that receives the event.
  package var eventID: String {
    "\(place.sequence).\(place.index)" + (place.node > 0 ? "-\(place.node)" : "")
  }
}

extension DeliveryID: CustomStringConvertible, LosslessStringConvertible, Comparable {
  package var description: String { "\(eventID).\(function)" }

  /// Parses the format of `description`; nil if malformed.
  package init?(_ description: String) {
    let parts = description.split(separator: ".", maxSplits: 2)
    guard parts.count == 3, let sequence = UInt64(parts[0]) else { return nil }
    let numbers = parts[1].split(separator: "-", omittingEmptySubsequences: false).map {
      UInt32($0)
    }
    guard numbers.count <= 2, let index = numbers[0], let node = numbers.count == 2 ? numbers[1] : 0
    else { return nil }
    self.init(EventPlace(sequence: sequence, index: index, node: node), String(parts[2]))
  }

  package static func < (left: DeliveryID, right: DeliveryID) -> Bool {
    left.place != right.place ? left.place < right.place : left.function < right.function
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
