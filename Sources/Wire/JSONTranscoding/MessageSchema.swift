package import Foundation
import SwiftProtobuf

/// The fields of messages by their JSON names, taken from protobuf descriptors.
package final class MessageSchema: Sendable {
  private let types: [String: MessageType]

  /// Parses a `google.protobuf.FileDescriptorSet`; throws if the bytes are not a valid message.
  package init(descriptors: Data) throws {
    let files = try Google_Protobuf_FileDescriptorSet(serializedBytes: descriptors)
    var reading = Reading()
    for file in files.file {
      for message in file.messageType { reading.add(message, in: file.package) }
      for `enum` in file.enumType { reading.add(`enum`, in: file.package) }
    }
    types = reading.messages.mapValues { MessageType($0, enums: reading.enums) }
  }

  /// Returns the type with a full name, such as `google.firestore.v1.Document`.
  func type(_ name: String) -> MessageType? { types[name] }

  /// The descriptors by their full names.
  private struct Reading {
    var messages: [String: Named<Google_Protobuf_DescriptorProto>] = [:]
    var enums: [String: [String: Int32]] = [:]

    mutating func add(_ message: Google_Protobuf_DescriptorProto, in scope: String) {
      let name = "\(scope).\(message.name)"
      messages[name] = Named(name: name, descriptor: message)
      for nested in message.nestedType { add(nested, in: name) }
      for `enum` in message.enumType { add(`enum`, in: name) }
    }

    mutating func add(_ enum: Google_Protobuf_EnumDescriptorProto, in scope: String) {
      enums["\(scope).\(`enum`.name)"] = Dictionary(
        `enum`.value.map { ($0.name, $0.number) },
        uniquingKeysWith: { first, _ in first }
      )
    }
  }

  fileprivate struct Named<Descriptor: Sendable>: Sendable {
    var name: String
    var descriptor: Descriptor
  }
}

/// The fields of one message type.
struct MessageType: Sendable {
  let name: String
  let isMapEntry: Bool
  /// The names of the oneofs, by their index.
  let oneofs: [String]
  /// The fields by both of their JSON names.
  private let fields: [String: MessageField]

  fileprivate init(
    _ message: MessageSchema.Named<Google_Protobuf_DescriptorProto>,
    enums: [String: [String: Int32]]
  ) {
    name = message.name
    isMapEntry = message.descriptor.options.mapEntry
    oneofs = message.descriptor.oneofDecl.map(\.name)
    var fields: [String: MessageField] = [:]
    for descriptor in message.descriptor.field {
      let field = MessageField(descriptor, enums: enums)
      fields[descriptor.name] = field
      fields[Self.camelCase(descriptor.name)] = field
    }
    self.fields = fields
  }

  func field(_ name: String) -> MessageField? { fields[name] }

  private static func camelCase(_ name: String) -> String {
    let words = name.split(separator: "_", omittingEmptySubsequences: false)
    return words.dropFirst().reduce(String(words.first ?? "")) {
      $0 + $1.prefix(1).uppercased() + $1.dropFirst()
    }
  }
}

/// One field of a message.
struct MessageField: Sendable {
  /// The name as written in the definition.
  let name: String
  let number: Int
  let isRepeated: Bool
  /// The index of the field's oneof; nil if it is in none.
  let oneof: Int?
  let kind: Kind

  /// The type of a field's values.
  enum Kind: Sendable {
    case message(name: String)
    case `enum`(name: String, numbers: [String: Int32])
    case double, float, int32, int64, uint32, uint64, bool, string, bytes

    /// The name of the type in error messages.
    var typeName: String {
      switch self {
      case .message(let name), .enum(let name, _): "type.googleapis.com/\(name)"
      case .double: "TYPE_DOUBLE"
      case .float: "TYPE_FLOAT"
      case .int32: "TYPE_INT32"
      case .int64: "TYPE_INT64"
      case .uint32: "TYPE_UINT32"
      case .uint64: "TYPE_UINT64"
      case .bool: "TYPE_BOOL"
      case .string: "TYPE_STRING"
      case .bytes: "TYPE_BYTES"
      }
    }
  }

  fileprivate init(
    _ descriptor: Google_Protobuf_FieldDescriptorProto,
    enums: [String: [String: Int32]]
  ) {
    name = descriptor.name
    number = Int(descriptor.number)
    isRepeated = descriptor.label == .repeated
    oneof = descriptor.hasOneofIndex ? Int(descriptor.oneofIndex) : nil
    let typeName = String(descriptor.typeName.drop { $0 == "." })
    kind =
      switch descriptor.type {
      case .double: .double
      case .float: .float
      case .int64, .sint64, .sfixed64: .int64
      case .uint64, .fixed64: .uint64
      case .int32, .sint32, .sfixed32: .int32
      case .uint32, .fixed32: .uint32
      case .bool: .bool
      case .string: .string
      case .bytes: .bytes
      case .enum: .enum(name: typeName, numbers: enums[typeName] ?? [:])
      case .message, .group: .message(name: typeName)
      }
  }
}
