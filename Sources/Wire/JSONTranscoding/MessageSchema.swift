package import Foundation
import SwiftProtobuf

/// The fields of messages by their names in JSON, as their descriptors tell them.
package final class MessageSchema: Sendable {
  private let types: [String: MessageType]

  /// Reads the bytes of a `google.protobuf.FileDescriptorSet`; throws when they are no such message.
  package init(descriptors: Data) throws {
    let files = try Google_Protobuf_FileDescriptorSet(serializedBytes: descriptors)
    var reading = Reading()
    for file in files.file {
      for message in file.messageType { reading.add(message, in: file.package) }
      for `enum` in file.enumType { reading.add(`enum`, in: file.package) }
    }
    types = reading.messages.mapValues { MessageType($0, enums: reading.enums) }
  }

  /// The type of a full name, such as `google.firestore.v1.Document`.
  func type(_ name: String) -> MessageType? { types[name] }

  /// Descriptors by their full names.
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

/// One message's fields.
struct MessageType: Sendable {
  let name: String
  let isMapEntry: Bool
  /// The names of the oneofs, by their places.
  let oneofs: [String]
  /// By each of the two names that a field has in JSON.
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
  /// As the definition spells it.
  let name: String
  let number: Int
  let isRepeated: Bool
  /// The place of its oneof.
  let oneof: Int?
  let kind: Kind

  /// What a field holds.
  enum Kind: Sendable {
    case message(name: String)
    case `enum`(name: String, numbers: [String: Int32])
    case double, float, int32, int64, uint32, uint64, bool, string, bytes

    /// What messages call it.
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
