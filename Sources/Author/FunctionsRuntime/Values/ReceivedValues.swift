import DatabaseModel
import Events
import JSONText

/// The nodes before and after a change, as an event describes them, and the place of the change.
struct ReceivedValues {
  var before: DatabaseNode
  var after: DatabaseNode
  var path: ResourcePath
  var instance: String

  /// Parses an event whose data has the node before the change and a merge patch.
  init(_ event: CloudEvent) throws {
    let members = try EventJSON.members(of: event.data)
    do {
      before = try DatabaseInput(Self.tree(members["data"])).node
      after = try before.applying(Self.tree(members["delta"]))
    } catch let error as DatabaseDataError {
      throw EventRefusedError("The event's data is no value of the database. \(error.message)")
    }
    // Events that were converted from the first generation have no such attributes.
    let subject = event.subject.map { $0.hasPrefix("refs/") ? String($0.dropFirst(5)) : $0 }
    let ref = event.extensions["ref"] ?? subject ?? ""
    path = ResourcePath(ref.split(separator: "/").map { String($0) })
    let last = event.source.split(separator: "/").last.map { String($0) }
    instance = event.extensions["instance"] ?? last ?? ""
  }

  private static func tree(_ text: [UInt8]?) throws -> JSONTree {
    guard let text else { return .null }
    do {
      return try JSONTree.parse(text)
    } catch {
      throw EventRefusedError(
        "The event's data is not JSON: \(error.reason) at byte \(error.offset)."
      )
    }
  }
}
