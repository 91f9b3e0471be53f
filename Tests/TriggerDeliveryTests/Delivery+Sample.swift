import DocumentModel
import Events
import Identity
import TriggerDelivery

extension Delivery {
  /// A delivery of a created document, different for each sequence.
  static func sample(
    sequence: UInt64 = 1,
    function: String = "f",
    document: String? = nil,
    at time: Timestamp
  ) -> Delivery {
    let name = DocumentName(
      database: DatabaseName(project: "demo"),
      path: ResourcePath(slashSeparated: document ?? "things/t\(sequence)")
    )
    let after = FirestoreDocument(
      name: name,
      fields: ["n": .integer(Int64(truncatingIfNeeded: sequence))],
      createTime: time,
      updateTime: time
    )
    return Delivery(
      id: DeliveryID(sequence: sequence, changeIndex: 0, function: function),
      event: DeliveryEvent(
        content: .document(DocumentChange(name: name, before: nil, after: after)),
        commitTime: time,
        auth: .admin
      ),
      type: DocumentEventType(.created)
    )
  }
}
