import DocumentModel
import Events
import Identity
import TriggerDelivery

extension Delivery {
  /// A delivery of a created document.
  static func sample(
    sequence: UInt64 = 1,
    function: String = "f",
    retries: Bool = false,
    at time: Timestamp
  ) -> Delivery {
    let name = DocumentName(
      database: DatabaseName(project: "demo"),
      path: ResourcePath(slashSeparated: "things/t1")
    )
    let document = Document(
      name: name,
      fields: ["n": .integer(Int64(sequence))],
      createTime: time,
      updateTime: time
    )
    return Delivery(
      id: DeliveryID(sequence: sequence, changeIndex: 0, function: function),
      change: DocumentChange(name: name, before: nil, after: document),
      kind: .created,
      commitTime: time,
      auth: .admin,
      retries: retries
    )
  }
}
