package import DocumentModel
package import FirestoreProtos
package import StatusCodes
package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension WireFormat {
  /// Returns the message of an error.
  package static func proto(_ error: any StatusConvertible) -> Google_Rpc_Status {
    .with {
      $0.code = Int32(error.statusCode.rawValue)
      $0.message = error.statusMessage
    }
  }

  /// The maximum number of dimensions of a vector.
  package static let vectorDimensionsMax = 2048

  static let typeKey: FieldName = "__type__"
  static let vectorType = "__vector__"
  static let vectorKey: FieldName = "value"

  /// Decodes a value of a document, filter or cursor.
  ///
  /// Refuses kinds of values that only pipelines support, and a value whose kind is not set.
  package static func value(
    _ proto: Google_Firestore_V1_Value
  ) throws(StatusError) -> FirestoreValue {
    switch proto.valueType {
    case .nullValue: .null
    case .booleanValue(let flag): .boolean(flag)
    case .integerValue(let number): .integer(number)
    case .doubleValue(let number): .double(number.withOneNaN)
    case .timestampValue(let time): .timestamp(try timestamp(time))
    case .stringValue(let text): .string(text)
    case .bytesValue(let data): .bytes(Array(data))
    case .referenceValue(let name):
      .reference(
        try ResourceNameParser(
          name,
          label: "Resource name",
          collectionLabel: "Document parent name"
        ).document()
      )
    case .geoPointValue(let point): .geoPoint(try geoPoint(point))
    case .arrayValue(let array): .array(try elements(array))
    case .mapValue(let map): try mapOrVector(map.fields)
    case .fieldReferenceValue: throw unsupported("FIELD_REFERENCE_VALUE")
    case .variableReferenceValue: throw unsupported("VARIABLE_REFERENCE_VALUE")
    case .functionValue: throw unsupported("FUNCTION_VALUE")
    case .pipelineValue: throw unsupported("PIPELINE_VALUE")
    case nil: throw .invalidArgument("Cannot convert firestore.v1.Value with type unset.")
    }
  }

  /// Decodes the fields of a document; the store checks their names.
  package static func fields(
    _ protos: [FieldName: Google_Firestore_V1_Value]
  ) throws(StatusError) -> MapValue {
    var fields: [(String, FirestoreValue)] = []
    fields.reserveCapacity(protos.count)
    for (name, proto) in protos { fields.append((name.text, try value(proto))) }
    return MapValue(fields)
  }

  /// Decodes the elements of an array; an element must not be an array itself.
  package static func elements(
    _ proto: Google_Firestore_V1_ArrayValue
  ) throws(StatusError) -> [FirestoreValue] {
    var elements: [FirestoreValue] = []
    elements.reserveCapacity(proto.values.count)
    for element in proto.values {
      if case .arrayValue = element.valueType {
        throw .invalidArgument("Nested arrays are not allowed")
      }
      elements.append(try value(element))
    }
    return elements
  }

  /// Decodes a document; an unset time becomes 1970-01-01.
  package static func document(
    _ proto: Google_Firestore_V1_Document
  ) throws(StatusError) -> FirestoreDocument {
    FirestoreDocument(
      name: try documentName(proto.name),
      fields: try fields(proto.fields),
      createTime: try timestamp(proto.createTime),
      updateTime: try timestamp(proto.updateTime)
    )
  }

  /// Decodes a time and rounds it down to the microsecond.
  package static func timestamp(
    _ proto: Google_Protobuf_Timestamp
  ) throws(StatusError) -> Timestamp {
    guard (0...999_999_999).contains(proto.nanos) else {
      throw .invalidArgument("Timestamp nanos exceeds limit for field.")
    }
    guard let time = Timestamp(seconds: proto.seconds, nanoseconds: proto.nanos) else {
      throw .invalidArgument("Timestamp seconds exceeds limit for field.")
    }
    return time
  }

  /// Decodes the time of a commit, which must not be more precise than a microsecond.
  package static func commitTimestamp(
    _ proto: Google_Protobuf_Timestamp
  ) throws(StatusError) -> Timestamp {
    let time = try timestamp(proto)
    guard proto.nanos.isMultiple(of: 1000) else {
      throw .invalidArgument("timestamp cannot have more than microseconds precision")
    }
    return time
  }

  /// Returns the message of a value.
  package static func proto(_ value: FirestoreValue) -> Google_Firestore_V1_Value {
    .with { proto in
      switch value {
      case .null: proto.nullValue = .nullValue
      case .boolean(let flag): proto.booleanValue = flag
      case .integer(let number): proto.integerValue = number
      case .double(let number): proto.doubleValue = number.withOneNaN
      case .timestamp(let time): proto.timestampValue = Self.proto(time)
      case .string(let text): proto.stringValue = text
      case .bytes(let bytes): proto.bytesValue = Data(bytes)
      case .reference(let name): proto.referenceValue = name.description
      case .geoPoint(let point):
        proto.geoPointValue = .with {
          $0.latitude = point.latitude
          $0.longitude = point.longitude
        }
      case .array(let elements): proto.arrayValue = Self.proto(elements: elements)
      case .vector(let elements):
        proto.mapValue.fields = [
          typeKey: .with { $0.stringValue = vectorType },
          vectorKey: .with {
            $0.arrayValue.values = elements.map { element in .with { $0.doubleValue = element } }
          },
        ]
      case .map(let fields): proto.mapValue = .with { $0.fields = Self.proto(fields) }
      }
    }
  }

  /// Returns the messages of the fields of a map or document.
  package static func proto(_ fields: MapValue) -> [FieldName: Google_Firestore_V1_Value] {
    Dictionary(uniqueKeysWithValues: fields.lazy.map { (FieldName($0.key), proto($0.value)) })
  }

  /// Returns the message of an array.
  package static func proto(elements: [FirestoreValue]) -> Google_Firestore_V1_ArrayValue {
    .with { $0.values = elements.map { proto($0) } }
  }

  /// Returns the message of a document.
  package static func proto(_ document: FirestoreDocument) -> Google_Firestore_V1_Document {
    .with {
      $0.name = document.name.description
      $0.fields = proto(document.fields)
      $0.createTime = proto(document.createTime)
      $0.updateTime = proto(document.updateTime)
    }
  }

  /// Returns the message of a time.
  package static func proto(_ time: Timestamp) -> Google_Protobuf_Timestamp {
    .with {
      $0.seconds = time.seconds
      $0.nanos = time.nanoseconds
    }
  }

  private static func unsupported(_ member: String) -> StatusError {
    .invalidArgument("Value type is not supported: \(member)")
  }

  private static func geoPoint(_ proto: Google_Type_LatLng) throws(StatusError) -> GeoPoint {
    try check("latitude", proto.latitude, limit: 90)
    try check("longitude", proto.longitude, limit: 180)
    return GeoPoint(latitude: proto.latitude, longitude: proto.longitude)
  }

  private static func check(
    _ coordinate: String,
    _ degrees: Double,
    limit: Double
  ) throws(StatusError) {
    // The range contains no NaN, so NaN is refused too.
    guard (-limit...limit).contains(degrees) else {
      let text = degrees.isNaN ? "NaN" : "\(degrees)"
      throw .invalidArgument(
        "Geo point \(coordinate) '\(text)' outside permitted range \(-limit) to \(limit)."
      )
    }
  }

  /// Decodes a map, or a vector from a map with `__type__`.
  private static func mapOrVector(
    _ protos: [FieldName: Google_Firestore_V1_Value]
  ) throws(StatusError) -> FirestoreValue {
    guard let type = protos[typeKey] else {
      for name in protos.keys where ResourceID.isReserved(name.text) {
        throw .invalidArgument("field name '\(name.text)' is reserved.")
      }
      return .map(try fields(protos))
    }
    guard case .stringValue(vectorType) = type.valueType else {
      throw .invalidArgument("field name '\(typeKey.text)' is reserved.")
    }
    guard case .arrayValue(let array) = protos[vectorKey]?.valueType else {
      throw .invalidArgument("Vector map is missing key '\(vectorKey.text)'.")
    }
    guard protos.count == 2 else {
      throw .invalidArgument("Vector Value map has extraneous entries.")
    }
    guard !array.values.isEmpty else {
      throw .invalidArgument("Cannot have a zero length vector.")
    }
    guard array.values.count <= vectorDimensionsMax else {
      throw .invalidArgument("Vectors must be at most \(vectorDimensionsMax) dimensions.")
    }
    var vector: [Double] = []
    vector.reserveCapacity(array.values.count)
    for element in array.values {
      guard case .doubleValue(let number) = element.valueType else {
        throw .invalidArgument("Vector must only contain values of type 'double'")
      }
      vector.append(number.withOneNaN)
    }
    return .vector(vector)
  }
}
