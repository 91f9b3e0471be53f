import DocumentModel
import StatusCodes
import Synchronization

/// The form of a document in exports of Google's tools: an `EntityProto` of Datastore.
///
/// A field is a property with a meaning that distinguishes types with the same representation. An
/// array is a series of properties of one name that are marked as multiple. The times of documents
/// are not part of the form.
enum EntityRecord {
  /// The numbers of the fields that are used, by message.
  private enum Field {
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
  private enum Meaning: UInt64 {
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
  private static let depthMax = 20
  private static let defaultDatabase = "(default)"

  // MARK: - Reading

  /// Decodes a record; throws `INVALID_ARGUMENT` with a description of the problem.
  ///
  /// The times of the document are `time`.
  static func document(
    _ record: [UInt8],
    time: Timestamp
  ) throws(StatusError) -> FirestoreDocument {
    var name: DocumentName?
    var entity = WireFields(record[...])
    while let (number, value) = try entity.next() {
      if number == Field.Entity.key, case .bytes(let key) = value { name = try self.name(key) }
    }
    guard let name, name.path.isDocument else {
      throw .invalidArgument("an entity without the key of a document")
    }
    return FirestoreDocument(
      name: name,
      fields: try fields(record[...], depth: 0),
      createTime: time,
      updateTime: time
    )
  }

  private static func fields(
    _ entity: ArraySlice<UInt8>,
    depth: Int
  ) throws(StatusError) -> MapValue {
    guard depth <= depthMax else {
      throw .invalidArgument("maps nested more than \(depthMax) times")
    }
    // By UTF-8, because equal strings may be different names of fields.
    var collected: [[UInt8]: CollectedField] = [:]
    var fields = WireFields(entity)
    while let (number, value) = try fields.next() {
      guard number == Field.Entity.property || number == Field.Entity.rawProperty,
        case .bytes(let bytes) = value
      else { continue }
      let property = try Property(bytes, depth: depth)
      try collected[Array(property.name.utf8), default: CollectedField(name: property.name)].add(
        property
      )
    }
    return MapValue(collected.values.lazy.map { ($0.name, $0.value) })
  }

  /// The properties of one name so far.
  private struct CollectedField {
    let name: String
    private var single: FirestoreValue?
    private var elements: [FirestoreValue] = []
    private var numbers: [Double] = []

    init(name: String) { self.name = name }

    mutating func add(_ property: Property) throws(StatusError) {
      switch (property.meaning, property.value) {
      case (.vector, .double(let number)) where single == nil && elements.isEmpty:
        numbers.append(number)
      case (.vector, _):
        throw .invalidArgument("the vector \(property.name) holds other values")
      case (_, let value) where property.isMultiple && single == nil && numbers.isEmpty:
        elements.append(value)
      case (_, let value) where single == nil && elements.isEmpty && numbers.isEmpty:
        single = value
      default: throw .invalidArgument("two properties \(property.name) that are no array")
      }
    }

    var value: FirestoreValue {
      single ?? (numbers.isEmpty ? .array(elements) : .vector(numbers))
    }
  }

  private struct Property {
    var name = ""
    var meaning: Meaning?
    var isMultiple = false
    var value = FirestoreValue.null

    init(_ bytes: ArraySlice<UInt8>, depth: Int) throws(StatusError) {
      var content: ArraySlice<UInt8> = []
      var hasName = false
      var fields = WireFields(bytes)
      while let (number, value) = try fields.next() {
        switch (number, value) {
        case (Field.Property.meaning, .number(0)): break
        case (Field.Property.meaning, .number(let number)):
          guard let known = Meaning(rawValue: number) else {
            throw .invalidArgument("a property of the unknown meaning \(number)")
          }
          meaning = known
        case (Field.Property.name, .bytes(let text)):
          name = try EntityRecord.text(text, "the name of a property")
          hasName = true
        case (Field.Property.isMultiple, .number(let flag)): isMultiple = flag != 0
        case (Field.Property.value, .bytes(let bytes)): content = bytes
        default: break
        }
      }
      guard hasName else { throw .invalidArgument("a property without a name") }
      value = try EntityRecord.value(content, meaning, of: name, depth: depth)
    }
  }

  private static func value(
    _ bytes: ArraySlice<UInt8>,
    _ meaning: Meaning?,
    of name: String,
    depth: Int
  ) throws(StatusError) -> FirestoreValue {
    var fields = WireFields(bytes)
    guard let (number, value) = try fields.next() else {
      return meaning == .emptyList ? .array([]) : .null
    }
    switch (number, value, meaning) {
    case (Field.Value.integer, .number(let bits), .timestamp):
      let time = Timestamp(microseconds: Int64(bitPattern: bits))
      guard Timestamp.secondsRange.contains(time.seconds) else {
        throw .invalidArgument("the time \(name) is outside the years 1 to 9999")
      }
      return .timestamp(time)
    case (Field.Value.integer, .number(let bits), nil): return .integer(Int64(bitPattern: bits))
    case (Field.Value.boolean, .number(let flag), nil): return .boolean(flag != 0)
    case (Field.Value.string, .bytes(let text), nil), (Field.Value.string, .bytes(let text), .text):
      return .string(try self.text(text, name))
    case (Field.Value.string, .bytes(let bytes), .bytes),
      (Field.Value.string, .bytes(let bytes), .byteString):
      return .bytes(Array(bytes))
    case (Field.Value.string, .bytes(let entity), .map):
      return .map(try self.fields(entity, depth: depth + 1))
    case (Field.Value.double, .double(let number), nil),
      (Field.Value.double, .double(let number), .vector):
      return .double(number)
    case (Field.Value.point, .group(let point), .geoPoint),
      (Field.Value.point, .group(let point), nil):
      return .geoPoint(try geoPoint(point))
    case (Field.Value.reference, .group(let reference), nil):
      return .reference(try self.reference(reference))
    default: throw .invalidArgument("the value of \(name) has an unknown form")
    }
  }

  private static func geoPoint(_ group: ArraySlice<UInt8>) throws(StatusError) -> GeoPoint {
    var (latitude, longitude) = (0.0, 0.0)
    var fields = WireFields(group)
    while let (number, value) = try fields.next() {
      guard case .double(let degrees) = value else { continue }
      if number == 6 { latitude = degrees }
      if number == 7 { longitude = degrees }
    }
    return GeoPoint(latitude: latitude, longitude: longitude)
  }

  private static func reference(_ group: ArraySlice<UInt8>) throws(StatusError) -> DocumentName {
    try name(group, type: 15, id: 16, key: 17)
  }

  private static func name(_ key: ArraySlice<UInt8>) throws(StatusError) -> DocumentName {
    guard let name = try path(of: key) else {
      throw .invalidArgument("an entity without the key of a document")
    }
    return name
  }

  private static func path(of key: ArraySlice<UInt8>) throws(StatusError) -> DocumentName? {
    var fields = WireFields(key)
    while let (number, value) = try fields.next() {
      guard number == Field.Key.path, case .bytes(let path) = value, !path.isEmpty else { continue }
      return try name(key, elements: path)
    }
    return nil
  }

  /// Reads a key whose path is a message with a group for each element.
  private static func name(
    _ key: ArraySlice<UInt8>,
    elements path: ArraySlice<UInt8>
  ) throws(StatusError) -> DocumentName {
    var segments: [String] = []
    var fields = WireFields(path)
    while let (number, value) = try fields.next() {
      guard number == 1, case .group(let element) = value else { continue }
      segments += try self.segments(element, type: 2, id: 3, key: 4)
    }
    return DocumentName(database: try database(key), path: ResourcePath(segments))
  }

  /// Reads a reference, whose path is a series of groups of its own.
  private static func name(
    _ reference: ArraySlice<UInt8>,
    type: Int,
    id: Int,
    key: Int
  ) throws(StatusError) -> DocumentName {
    var segments: [String] = []
    var fields = WireFields(reference)
    while let (number, value) = try fields.next() {
      guard number == Field.Key.path, case .group(let element) = value else { continue }
      segments += try self.segments(element, type: type, id: id, key: key)
    }
    let name = DocumentName(database: try database(reference), path: ResourcePath(segments))
    guard name.path.isDocument, DocumentName(name.description) == name else {
      throw .invalidArgument("a reference to no document")
    }
    return name
  }

  private static func segments(
    _ element: ArraySlice<UInt8>,
    type: Int,
    id: Int,
    key: Int
  ) throws(StatusError) -> [String] {
    var (collection, document) = ("", "")
    var fields = WireFields(element)
    while let (number, value) = try fields.next() {
      switch (number, value) {
      case (type, .bytes(let text)): collection = try self.text(text, "a collection's id")
      case (key, .bytes(let text)): document = try self.text(text, "a document's id")
      case (id, .number(let bits)): document = "__id\(Int64(bitPattern: bits))__"
      default: break
      }
    }
    guard !collection.isEmpty, !document.isEmpty else {
      throw .invalidArgument("a key with an empty id")
    }
    return [collection, document]
  }

  /// The last database that was read, with the fields of the key that named it.
  ///
  /// Nearly all keys of an export name the same one, and reading its name takes a quarter of the
  /// time for a document.
  private static let lastDatabase = Mutex<(fields: [ArraySlice<UInt8>], name: DatabaseName)?>(nil)

  /// Reads the database of a key; an app is the project behind the name of a partition and `~`.
  private static func database(_ key: ArraySlice<UInt8>) throws(StatusError) -> DatabaseName {
    var (app, database) = (ArraySlice<UInt8>(), ArraySlice<UInt8>())
    var fields = WireFields(key)
    while let (number, value) = try fields.next() {
      guard case .bytes(let bytes) = value else { continue }
      if number == Field.Key.app { app = bytes }
      if number == Field.Key.database { database = bytes }
    }
    if let last = lastDatabase.withLock(\.self), last.fields == [app, database] {
      return last.name
    }
    let project = try text(app, "an app's id").split(separator: "~").last.map(String.init)
    var name = DatabaseName(project: project ?? "")
    if !database.isEmpty { name.database = try text(database, "a database's id") }
    guard !name.project.isEmpty, DatabaseName(name.description) == name else {
      throw .invalidArgument("a key without a project, or with a database that cannot be")
    }
    // Slices of the record would keep all of it.
    let copies = [Array(app)[...], Array(database)[...]]
    lastDatabase.withLock { [name] in $0 = (copies, name) }
    return name
  }

  private static func text(_ bytes: ArraySlice<UInt8>, _ what: String) throws(StatusError) -> String
  {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .invalidArgument("\(what) is not UTF-8")
    }
    return text
  }

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
