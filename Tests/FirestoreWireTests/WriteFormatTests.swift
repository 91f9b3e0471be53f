import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf
import Testing

@Suite("Writes on the wire")
struct WriteFormatTests {
  static let root = "projects/p/databases/(default)/documents"
  private let name = DocumentName(
    database: DatabaseName(project: "p"),
    path: ResourcePath(["c", "a"])
  )

  @Test("Every kind of write comes back as it was")
  func roundTrip() throws {
    let transforms: [FieldTransform] = [
      FieldTransform(FieldPath(["a", "b.c"]), .requestTime),
      FieldTransform(FieldPath(["n"]), .increment(.integer(0))),
      FieldTransform(FieldPath(["n"]), .maximum(.double(1))),
      FieldTransform(FieldPath(["n"]), .minimum(.double(.nan))),
      FieldTransform(FieldPath(["l"]), .appendMissingElements([.null, .vector([1])])),
      FieldTransform(FieldPath(["l"]), .removeAllFromArray([])),
    ]
    let writes = [
      Write(.update(name, fields: ["a": .null], mask: nil, transforms: [])),
      Write(
        .update(name, fields: [:], mask: [], transforms: transforms),
        precondition: .exists(true)
      ),
      Write(
        .update(name, fields: [:], mask: [FieldPath(["x.y"])], transforms: []),
        precondition: .exists(false)
      ),
      Write(.delete(name), precondition: .updateTime(Timestamp(microseconds: 1))),
      Write(.verify(name), precondition: .exists(true)),
    ]

    for write in writes {
      let bytes: [UInt8] = try WireFormat.proto(write).serializedBytes()
      #expect(try WireFormat.write(Google_Firestore_V1_Write(serializedBytes: bytes)) == write)
    }
  }

  @Test("A legacy transform is an update with an empty mask")
  func legacyTransform() throws {
    let proto = Google_Firestore_V1_Write.with {
      $0.transform.document = name.description
      $0.transform.fieldTransforms = [
        .with {
          $0.fieldPath = "a"
          $0.setToServerValue = .requestTime
        }
      ]
    }

    #expect(
      try WireFormat.write(proto).operation
        == .update(
          name,
          fields: [:],
          mask: [],
          transforms: [FieldTransform(FieldPath(["a"]), .requestTime)]
        )
    )
  }

  @Test(
    "A malformed write is refused in production's words",
    arguments: [
      (#"{}"#, "empty write operation"),
      (
        #"{"transform":{"document":"\#(root)/c/a"}}"#,
        "The list of FieldTransform must not be empty."
      ),
      (
        #"{"delete":"\#(root)/c/a","updateMask":{}}"#, "a delete must not specify a document mask."
      ),
      (
        #"{"update":{"name":"\#(root)/c/a"},"updateTransforms":[{"fieldPath":"b"}]}"#,
        "Operation type must be specified for field transformation."
      ),
      (
        #"{"update":{"name":"\#(root)/c/a"},"updateTransforms":[{"fieldPath":"b","setToServerValue":0}]}"#,
        "ServerValue type must be specified for set_to_server_value transformation."
      ),
      (
        #"{"update":{"name":"\#(root)/c/a"},"updateTransforms":[{"fieldPath":"b","increment":{"stringValue":"1"}}]}"#,
        "Input must be int64 or double."
      ),
      (
        #"{"delete":"\#(root)/c/a","currentDocument":{"updateTime":"2020-01-01T00:00:00.000000001Z"}}"#,
        "timestamp cannot have more than microseconds precision"
      ),
    ]
  )
  func malformed(json: String, message: String) throws {
    let proto = try Google_Firestore_V1_Write(jsonString: json)

    #expect(throws: StatusError.invalidArgument(message)) { try WireFormat.write(proto) }
  }
}
