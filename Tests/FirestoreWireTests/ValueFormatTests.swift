import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf
import Testing
import TestSupport

@Suite("Values on the wire")
struct ValueFormatTests {
  typealias Proto = Google_Firestore_V1_Value

  @Test("Random fields come back exactly, through bytes and through JSON")
  func roundTrip() throws {
    var samples = Samples(generator: .forTest())
    for _ in 0..<200 {
      let fields = samples.fields()
      let message = Google_Firestore_V1_MapValue.with { $0.fields = WireFormat.proto(fields) }
      let fromBytes = try Google_Firestore_V1_MapValue(
        serializedBytes: message.serializedBytes() as [UInt8]
      )
      let fromJSON = try Google_Firestore_V1_MapValue(jsonString: message.jsonString())

      #expect(try WireFormat.fields(fromBytes.fields) == fields)
      #expect(try WireFormat.fields(fromJSON.fields) == fields)
    }
  }

  @Test("A vector travels as a map with a type")
  func vectorForm() throws {
    let proto = WireFormat.proto(.vector([1, 2]))

    #expect(proto.mapValue.fields["__type__"]?.stringValue == "__vector__")
    #expect(proto.mapValue.fields["value"]?.arrayValue.values.map(\.doubleValue) == [1, 2])
  }

  @Test("A time is rounded down to the microsecond, also before 1970")
  func timestampsAreFloored() throws {
    let proto = Google_Protobuf_Timestamp.with {
      $0.seconds = -1
      $0.nanos = 999_999_999
    }

    #expect(try WireFormat.timestamp(proto) == Timestamp(microseconds: -1))
    #expect(throws: StatusError.self) { try WireFormat.commitTimestamp(proto) }
  }

  @Test(
    "What no document can hold is refused in production's words",
    arguments: [
      (#"{}"#, "Cannot convert firestore.v1.Value with type unset."),
      (#"{"fieldReferenceValue":"x"}"#, "Value type is not supported: FIELD_REFERENCE_VALUE"),
      (#"{"variableReferenceValue":"x"}"#, "Value type is not supported: VARIABLE_REFERENCE_VALUE"),
      (#"{"functionValue":{"name":"x"}}"#, "Value type is not supported: FUNCTION_VALUE"),
      (#"{"pipelineValue":{}}"#, "Value type is not supported: PIPELINE_VALUE"),
      (
        #"{"arrayValue":{"values":[{"arrayValue":{}}]}}"#,
        "Nested arrays are not allowed"
      ),
      (#"{"arrayValue":{"values":[{}]}}"#, "Cannot convert firestore.v1.Value with type unset."),
      (#"{"referenceValue":"foo"}"#, #"Resource name "foo" lacks "projects" at index 0."#),
      (
        #"{"geoPointValue":{"latitude":91}}"#,
        "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."
      ),
      (
        #"{"geoPointValue":{"longitude":"NaN"}}"#,
        "Geo point longitude 'NaN' outside permitted range -180.0 to 180.0."
      ),
      (#"{"mapValue":{"fields":{"__a__":{"nullValue":null}}}}"#, "field name '__a__' is reserved."),
      (
        #"{"mapValue":{"fields":{"__type__":{"stringValue":"x"}}}}"#,
        "field name '__type__' is reserved."
      ),
    ]
  )
  func refused(json: String, message: String) throws {
    let proto = try Proto(jsonString: json)

    #expect(throws: StatusError.invalidArgument(message)) { try WireFormat.value(proto) }
  }

  @Test(
    "A malformed vector is refused",
    arguments: [
      (#""value":{"arrayValue":{}}"#, "Cannot have a zero length vector."),
      (#""x":{"arrayValue":{}}"#, "Vector map is missing key 'value'."),
      (
        #""value":{"arrayValue":{"values":[{"integerValue":1}]}}"#,
        "Vector must only contain values of type 'double'"
      ),
      (
        #""value":{"arrayValue":{"values":[{"doubleValue":1}]}},"x":{"nullValue":null}"#,
        "Vector Value map has extraneous entries."
      ),
    ]
  )
  func malformedVector(rest: String, message: String) throws {
    let type = #""__type__":{"stringValue":"__vector__"}"#
    let proto = try Proto(jsonString: #"{"mapValue":{"fields":{\#(type),\#(rest)}}}"#)

    #expect(throws: StatusError.invalidArgument(message)) { try WireFormat.value(proto) }
  }

  @Test("A vector has at most 2048 dimensions")
  func vectorBound() throws {
    let fits = WireFormat.proto(.vector(Array(repeating: 1, count: 2048)))
    let tooLong = WireFormat.proto(.vector(Array(repeating: 1, count: 2049)))

    #expect(try WireFormat.value(fits) == .vector(Array(repeating: 1, count: 2048)))
    #expect(
      throws: StatusError.invalidArgument("Vectors must be at most 2048 dimensions.")
    ) { try WireFormat.value(tooLong) }
  }

  @Test(
    "A time outside years 1 to 9999 is refused",
    arguments: [(1 << 50, 0), (-62_135_596_801, 0), (0, -1), (0, 1_000_000_000)] as [(Int64, Int32)]
  )
  func timestampRange(seconds: Int64, nanos: Int32) {
    let proto = Proto.with {
      $0.timestampValue.seconds = seconds
      $0.timestampValue.nanos = nanos
    }
    let part = nanos == 0 ? "seconds" : "nanos"

    #expect(
      throws: StatusError.invalidArgument("Timestamp \(part) exceeds limit for field.")
    ) { try WireFormat.value(proto) }
  }
}
