package import DocumentModel
package import Events
package import FirestoreProtos
package import StatusCodes
import SwiftProtobuf

extension WireFormat {
  /// Returns the CloudEvent data for a document's change.
  ///
  /// Only updates have a mask: the deepest paths whose values differ, in order.
  package static func eventData(
    for change: DocumentChange
  ) -> Google_Events_Cloud_Firestore_V1_DocumentEventData {
    .with {
      if let after = change.after { $0.value = proto(after) }
      if let before = change.before { $0.oldValue = proto(before) }
      if let before = change.before, let after = change.after {
        $0.updateMask = proto(mask: changedPaths(from: before.fields, to: after.fields))
      }
    }
  }

  /// Decodes an event's data; at least one of the two documents must be present.
  package static func change(
    from data: Google_Events_Cloud_Firestore_V1_DocumentEventData
  ) throws(StatusError) -> (
    before: FirestoreDocument?, after: FirestoreDocument?, updateMask: [FieldPath]
  ) {
    // Some senders write a present but empty document instead of an absent one.
    let after = isAbsent(data.value) ? nil : try document(data.value)
    let before = isAbsent(data.oldValue) ? nil : try document(data.oldValue)
    guard before != nil || after != nil else {
      throw .invalidArgument("The event has neither a value nor an old value.")
    }
    return (before, after, try mask(data.updateMask))
  }

  /// Returns the deepest paths at which two maps differ, in order.
  package static func changedPaths(
    from before: MapValue,
    to after: MapValue
  ) -> [FieldPath] {
    var paths: [FieldPath] = []
    appendChangedPaths(from: before, to: after, below: [], to: &paths)
    return paths.sorted()
  }

  private static func isAbsent(_ proto: Google_Firestore_V1_Document) -> Bool {
    proto.name.isEmpty && proto.fields.isEmpty
  }

  /// Appends the changed paths recursively; the nesting limit of documents bounds the recursion.
  private static func appendChangedPaths(
    from before: MapValue,
    to after: MapValue,
    below path: [String],
    to paths: inout [FieldPath]
  ) {
    for key in Set(before.keys).union(after.keys) where before[key] != after[key] {
      if case .map(let old) = before[key], case .map(let new) = after[key] {
        appendChangedPaths(from: old, to: new, below: path + [key], to: &paths)
      } else {
        paths.append(FieldPath(path + [key]))
      }
    }
  }
}
