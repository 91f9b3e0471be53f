package import DocumentModel
package import FirestoreProtos
package import StatusCodes
import SwiftProtobuf

extension WireFormat {
  /// Decodes a write.
  ///
  /// A legacy top-level transform becomes an update with an empty mask, which has the same effect.
  package static func write(_ proto: Google_Firestore_V1_Write) throws(StatusError) -> Write {
    let precondition =
      proto.hasCurrentDocument ? try Self.precondition(proto.currentDocument) : .none
    let operation: Write.Operation
    switch proto.operation {
    case .update(let document):
      operation = .update(
        try documentName(document.name),
        fields: try fields(document.fields),
        mask: proto.hasUpdateMask ? try mask(proto.updateMask) : nil,
        transforms: try transforms(proto.updateTransforms)
      )
    case .delete(let name):
      try refuseUpdateParts(of: proto, kind: "delete")
      operation = .delete(try documentName(name))
    case .verify(let name):
      try refuseUpdateParts(of: proto, kind: "verify")
      operation = .verify(try documentName(name))
    case .transform(let transform):
      try refuseUpdateParts(of: proto, kind: "transform")
      guard !transform.fieldTransforms.isEmpty else {
        throw .invalidArgument("The list of FieldTransform must not be empty.")
      }
      operation = .update(
        try documentName(transform.document),
        fields: [:],
        mask: [],
        transforms: try transforms(transform.fieldTransforms)
      )
    case nil:
      throw .invalidArgument("empty write operation")
    }
    return Write(operation, precondition: precondition)
  }

  /// Decodes a precondition; a message without a condition becomes `.none`.
  package static func precondition(
    _ proto: Google_Firestore_V1_Precondition
  ) throws(StatusError) -> Precondition {
    switch proto.conditionType {
    case .exists(let exists): .exists(exists)
    case .updateTime(let time): .updateTime(try commitTimestamp(time))
    case nil: .none
    }
  }

  /// Returns the message of a write.
  package static func proto(_ write: Write) -> Google_Firestore_V1_Write {
    .with { proto in
      switch write.operation {
      case .update(let name, let fields, let mask, let transforms):
        proto.update = .with {
          $0.name = name.description
          $0.fields = Self.proto(fields)
        }
        if let mask { proto.updateMask = Self.proto(mask: mask) }
        proto.updateTransforms = transforms.map { Self.proto($0) }
      case .delete(let name): proto.delete = name.description
      case .verify(let name): proto.verify = name.description
      }
      if let precondition = Self.proto(write.precondition) { proto.currentDocument = precondition }
    }
  }

  /// Returns the message of a precondition; nil for `.none`.
  package static func proto(_ precondition: Precondition) -> Google_Firestore_V1_Precondition? {
    switch precondition {
    case .none: nil
    case .exists(let exists): .with { $0.exists = exists }
    case .updateTime(let time): .with { $0.updateTime = proto(time) }
    }
  }

  private typealias FieldTransformProto = Google_Firestore_V1_DocumentTransform.FieldTransform

  private static func refuseUpdateParts(
    of proto: Google_Firestore_V1_Write,
    kind: String
  ) throws(StatusError) {
    if proto.hasUpdateMask {
      throw .invalidArgument("a \(kind) must not specify a document mask.")
    }
    if !proto.updateTransforms.isEmpty {
      throw .invalidArgument("a \(kind) must not specify a update transform.")
    }
  }

  private static func transforms(
    _ protos: [FieldTransformProto]
  ) throws(StatusError) -> [FieldTransform] {
    var transforms: [FieldTransform] = []
    for proto in protos {
      transforms.append(FieldTransform(try fieldPath(proto.fieldPath), try transformKind(proto)))
    }
    return transforms
  }

  private static func transformKind(
    _ proto: FieldTransformProto
  ) throws(StatusError) -> FieldTransform.Kind {
    switch proto.transformType {
    case .setToServerValue(.requestTime): return .requestTime
    case .setToServerValue:
      throw .invalidArgument(
        "ServerValue type must be specified for set_to_server_value transformation."
      )
    case .increment(let operand): return .increment(try number(operand))
    case .maximum(let operand): return .maximum(try number(operand))
    case .minimum(let operand): return .minimum(try number(operand))
    case .appendMissingElements(let array): return .appendMissingElements(try elements(array))
    case .removeAllFromArray(let array): return .removeAllFromArray(try elements(array))
    case nil:
      throw .invalidArgument("Operation type must be specified for field transformation.")
    }
  }

  private static func number(_ proto: Google_Firestore_V1_Value) throws(StatusError)
    -> FirestoreValue
  {
    let operand = try value(proto)
    switch operand {
    case .integer, .double: return operand
    default: throw .invalidArgument("Input must be int64 or double.")
    }
  }

  private static func proto(_ transform: FieldTransform) -> FieldTransformProto {
    .with {
      $0.fieldPath = transform.path.description
      switch transform.kind {
      case .requestTime: $0.setToServerValue = .requestTime
      case .increment(let operand): $0.increment = proto(operand)
      case .maximum(let operand): $0.maximum = proto(operand)
      case .minimum(let operand): $0.minimum = proto(operand)
      case .appendMissingElements(let values): $0.appendMissingElements = proto(elements: values)
      case .removeAllFromArray(let values): $0.removeAllFromArray = proto(elements: values)
      }
    }
  }
}
