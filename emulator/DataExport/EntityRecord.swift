import DocumentModel

/// The form of a document in exports of Google's tools: an `EntityProto` of Datastore.
///
/// A field is a property with a meaning that distinguishes types with the same representation. An
/// array is a series of properties of one name that are marked as multiple. The times of documents
/// are not part of the form.
enum EntityRecord {
  /// The numbers of the fields that are used, by message.
  enum Field {
    enum Entity {
      static let key = 13
      static let property = 14
      /// A property that no index has.
      static let rawProperty = 15
      static let group = 16
    }

    enum Key {
      static let app = 13
      static let path = 14
      static let database = 23
    }

    enum Property {
      static let meaning = 1
      static let name = 3
      static let isMultiple = 4
      static let value = 5
    }

    enum Value {
      static let integer = 1
      static let boolean = 2
      static let string = 3
      static let double = 4
      static let point = 5
      static let reference = 12
    }
  }

  /// The meanings of properties, with Datastore's numbers.
  enum Meaning: UInt64 {
    case timestamp = 7
    case geoPoint = 9
    case bytes = 14
    case text = 15
    case byteString = 16
    case map = 19
    case emptyList = 24
    case vector = 31
  }

  /// The maximum nesting of maps, as in Firestore.
  static let depthMax = 20
  private static let defaultDatabase = "(default)"

  // MARK: - Writing

  /// Encodes a document; documents with equal fields have equal records.
  static func bytes(_ document: FirestoreDocument) -> [UInt8] {
    var writer = WireWriter()
    writer.bytes(Field.Entity.key, key(document.name))
    append(document.fields, to: &writer)
    writer.bytes(Field.Entity.group, rootPath(document.name.path))
    return writer.bytes
  }

  private static func append(_ fields: MapValue, to writer: inout WireWriter) {
    for (name, value) in fields {
      switch value {
      case .array(let elements) where elements.isEmpty:
        writer.bytes(Field.Entity.property, property(name, .emptyList, false, []))
      case .array(let elements):
        for element in elements { append(name, element, isMultiple: true, to: &writer) }
      case .vector(let elements):
        for element in elements {
          var content = WireWriter()
          content.double(Field.Value.double, element)
          writer.bytes(Field.Entity.rawProperty, property(name, .vector, true, content.bytes))
        }
      default: append(name, value, isMultiple: false, to: &writer)
      }
    }
  }

  private static func append(
    _ name: String,
    _ value: FirestoreValue,
    isMultiple: Bool,
    to writer: inout WireWriter
  ) {
    var content = WireWriter()
    var meaning: Meaning?
    switch value {
    case .null: break
    case .boolean(let flag): content.number(Field.Value.boolean, flag ? 1 : 0)
    case .integer(let number): content.number(Field.Value.integer, UInt64(bitPattern: number))
    case .double(let number): content.double(Field.Value.double, number)
    case .timestamp(let time):
      meaning = .timestamp
      content.number(Field.Value.integer, UInt64(bitPattern: time.microseconds))
    case .string(let text): content.bytes(Field.Value.string, Array(text.utf8))
    case .bytes(let bytes):
      meaning = .bytes
      content.bytes(Field.Value.string, bytes)
    case .reference(let name): content.group(Field.Value.reference, reference(name))
    case .geoPoint(let point):
      meaning = .geoPoint
      var degrees = WireWriter()
      degrees.double(6, point.latitude)
      degrees.double(7, point.longitude)
      content.group(Field.Value.point, degrees.bytes)
    case .map(let fields):
      meaning = .map
      var entity = WireWriter()
      var key = WireWriter()
      key.bytes(Field.Key.app, [])
      key.bytes(Field.Key.path, [])
      entity.bytes(Field.Entity.key, key.bytes)
      append(fields, to: &entity)
      entity.bytes(Field.Entity.group, [])
      content.bytes(Field.Value.string, entity.bytes)
    // An array holds no array, and a vector in an array is part of a map.
    case .array, .vector: break
    }
    writer.bytes(Field.Entity.rawProperty, property(name, meaning, isMultiple, content.bytes))
  }

  private static func property(
    _ name: String,
    _ meaning: Meaning?,
    _ isMultiple: Bool,
    _ value: [UInt8]
  ) -> [UInt8] {
    var writer = WireWriter()
    if let meaning { writer.number(Field.Property.meaning, meaning.rawValue) }
    writer.bytes(Field.Property.name, Array(name.utf8))
    writer.number(Field.Property.isMultiple, isMultiple ? 1 : 0)
    writer.bytes(Field.Property.value, value)
    return writer.bytes
  }

  private static func key(_ name: DocumentName) -> [UInt8] {
    var writer = WireWriter()
    writer.bytes(Field.Key.app, Array("dev~\(name.database.project)".utf8))
    var path = WireWriter()
    for element in elements(name.path, type: 2, id: 3, key: 4) { path.group(1, element) }
    writer.bytes(Field.Key.path, path.bytes)
    if name.database.database != defaultDatabase {
      writer.bytes(Field.Key.database, Array(name.database.database.utf8))
    }
    return writer.bytes
  }

  private static func reference(_ name: DocumentName) -> [UInt8] {
    var writer = WireWriter()
    writer.bytes(Field.Key.app, Array("dev~\(name.database.project)".utf8))
    for element in elements(name.path, type: 15, id: 16, key: 17) {
      writer.group(Field.Key.path, element)
    }
    if name.database.database != defaultDatabase {
      writer.bytes(Field.Key.database, Array(name.database.database.utf8))
    }
    return writer.bytes
  }

  private static func rootPath(_ path: ResourcePath) -> [UInt8] {
    var writer = WireWriter()
    if let root = elements(path, type: 2, id: 3, key: 4).first { writer.group(1, root) }
    return writer.bytes
  }

  private static func elements(_ path: ResourcePath, type: Int, id: Int, key: Int) -> [[UInt8]] {
    stride(from: 0, to: path.segments.count - 1, by: 2).map { index in
      let (collection, document) = (path.segments[index], path.segments[index + 1])
      var writer = WireWriter()
      writer.bytes(type, Array(collection.utf8))
      if document.hasPrefix("__id"), document.hasSuffix("__"),
        let number = Int64(document.dropFirst(4).dropLast(2))
      {
        writer.number(id, UInt64(bitPattern: number))
      } else {
        writer.bytes(key, Array(document.utf8))
      }
      return writer.bytes
    }
  }
}

/// A writer of fields in protobuf's binary form.
struct WireWriter {
  private(set) var bytes: [UInt8] = []

  mutating func number(_ field: Int, _ value: UInt64) {
    varint(UInt64(field) << 3)
    varint(value)
  }

  mutating func double(_ field: Int, _ value: Double) {
    varint(UInt64(field) << 3 | 1)
    let bits = value.bitPattern
    bytes += (0..<8).map { UInt8(truncatingIfNeeded: bits >> (8 * UInt64($0))) }
  }

  mutating func bytes(_ field: Int, _ value: [UInt8]) {
    varint(UInt64(field) << 3 | 2)
    varint(UInt64(value.count))
    bytes += value
  }

  mutating func group(_ field: Int, _ content: [UInt8]) {
    varint(UInt64(field) << 3 | 3)
    bytes += content
    varint(UInt64(field) << 3 | 4)
  }

  private mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }
}
