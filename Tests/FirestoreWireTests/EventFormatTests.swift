import DocumentModel
import Events
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf
import Testing
import TestSupport

@Suite("Event data on the wire")
struct EventFormatTests {
  private let name = DocumentName(
    database: DatabaseName(project: "p"),
    path: ResourcePath(["c", "a"])
  )

  private func document(_ fields: MapValue, updated: Int64 = 2) -> FirestoreDocument {
    FirestoreDocument(
      name: name,
      fields: fields,
      createTime: Timestamp(microseconds: 1),
      updateTime: Timestamp(microseconds: updated)
    )
  }

  @Test("Created, updated and deleted come back as they were")
  func roundTrip() throws {
    var samples = Samples(generator: .forTest())
    let old = document(samples.fields())
    var fields = samples.fields()
    fields["z"] = .null
    let new = document(fields, updated: 3)

    for (before, after) in [(nil, new), (old, new), (old, nil)]
      as [(FirestoreDocument?, FirestoreDocument?)]
    {
      let change = DocumentChange(name: name, before: before, after: after)
      let bytes: [UInt8] = try WireFormat.eventData(for: change).serializedBytes()
      let data = try Google_Events_Cloud_Firestore_V1_DocumentEventData(serializedBytes: bytes)
      let read = try WireFormat.change(from: data)

      #expect(read.before == before && read.after == after)
      #expect(data.hasUpdateMask == (before != nil && after != nil))
    }
  }

  @Test("The mask of an update names the deepest paths that changed, in order")
  func updateMask() throws {
    let before = document([
      "same": .integer(1), "gone": .null, "kind": .integer(3),
      "m": .map(["x": .integer(1), "y": .integer(2), "d.t": .map(["e": .null])]),
      "list": .array([.map(["x": .integer(1)])]),
    ])
    let after = document([
      "same": .integer(1), "new": .null, "kind": .double(3),
      "m": .map(["x": .integer(2), "y": .integer(2), "d.t": .map([:])]),
      "list": .array([.map(["x": .integer(2)])]),
    ])
    let data = WireFormat.eventData(for: DocumentChange(name: name, before: before, after: after))

    #expect(
      data.updateMask.fieldPaths == ["gone", "kind", "list", "m.`d.t`.e", "m.x", "new"]
    )
  }

  @Test("An empty document stands for none, and an event needs one")
  func emptyDocuments() throws {
    let after = document(["a": .null])
    let data = Google_Events_Cloud_Firestore_V1_DocumentEventData.with {
      $0.value = WireFormat.proto(after)
      $0.oldValue = Google_Firestore_V1_Document()
    }
    let read = try WireFormat.change(from: data)

    #expect(read.before == nil && read.after == after)
    #expect(throws: StatusError.self) { try WireFormat.change(from: .init()) }
  }
}
