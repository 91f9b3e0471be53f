import DocumentModel
import StatusCodes

/// A reader of documents in the form of `EntityRecord`.
///
/// One reader is for many records of an export, because it remembers what they have in common.
final class EntityReader {
  private typealias Field = EntityRecord.Field
  private typealias Meaning = EntityRecord.Meaning

  /// The last database that was read, with the fields of the key that named it.
  ///
  /// Nearly all keys of an export name the same one, and reading its name takes a quarter of the
  /// time for a document.
  private var lastDatabase: (fields: [ArraySlice<UInt8>], name: DatabaseName)?

  /// Decodes a record; throws `INVALID_ARGUMENT` with a description of the problem.
  ///
  /// The times of the document are `time`.
  func document(
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

  private func fields(
    _ entity: ArraySlice<UInt8>,
    depth: Int
  ) throws(StatusError) -> MapValue {
    guard depth <= EntityRecord.depthMax else {
      throw .invalidArgument("maps nested more than \(EntityRecord.depthMax) times")
    }
    // By UTF-8, because equal strings may be different names of fields.
    var collected: [[UInt8]: CollectedField] = [:]
    var fields = WireFields(entity)
    while let (number, value) = try fields.next() {
      guard number == Field.Entity.property || number == Field.Entity.rawProperty,
        case .bytes(let bytes) = value
      else { continue }
      let property = try property(bytes, depth: depth)
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
  }

  private func property(
    _ bytes: ArraySlice<UInt8>,
    depth: Int
  ) throws(StatusError) -> Property {
    var property = Property()
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
        property.meaning = known
      case (Field.Property.name, .bytes(let text)):
        property.name = try self.text(text, "the name of a property")
        hasName = true
      case (Field.Property.isMultiple, .number(let flag)): property.isMultiple = flag != 0
      case (Field.Property.value, .bytes(let bytes)): content = bytes
      default: break
      }
    }
    guard hasName else { throw .invalidArgument("a property without a name") }
    property.value = try value(content, property.meaning, of: property.name, depth: depth)
    return property
  }

  private func value(
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

  private func geoPoint(_ group: ArraySlice<UInt8>) throws(StatusError) -> GeoPoint {
    var (latitude, longitude) = (0.0, 0.0)
    var fields = WireFields(group)
    while let (number, value) = try fields.next() {
      guard case .double(let degrees) = value else { continue }
      if number == 6 { latitude = degrees }
      if number == 7 { longitude = degrees }
    }
    return GeoPoint(latitude: latitude, longitude: longitude)
  }

  private func reference(_ group: ArraySlice<UInt8>) throws(StatusError) -> DocumentName {
    try name(group, type: 15, id: 16, key: 17)
  }

  private func name(_ key: ArraySlice<UInt8>) throws(StatusError) -> DocumentName {
    guard let name = try path(of: key) else {
      throw .invalidArgument("an entity without the key of a document")
    }
    return name
  }

  private func path(of key: ArraySlice<UInt8>) throws(StatusError) -> DocumentName? {
    var fields = WireFields(key)
    while let (number, value) = try fields.next() {
      guard number == Field.Key.path, case .bytes(let path) = value, !path.isEmpty else { continue }
      return try name(key, elements: path)
    }
    return nil
  }

  /// Reads a key whose path is a message with a group for each element.
  private func name(
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
  private func name(
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

  private func segments(
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

  /// Reads the database of a key; an app is the project behind the name of a partition and `~`.
  private func database(_ key: ArraySlice<UInt8>) throws(StatusError) -> DatabaseName {
    var (app, database) = (ArraySlice<UInt8>(), ArraySlice<UInt8>())
    var fields = WireFields(key)
    while let (number, value) = try fields.next() {
      guard case .bytes(let bytes) = value else { continue }
      if number == Field.Key.app { app = bytes }
      if number == Field.Key.database { database = bytes }
    }
    if let lastDatabase, lastDatabase.fields == [app, database] { return lastDatabase.name }
    let project = try text(app, "an app's id").split(separator: "~").last.map(String.init)
    var name = DatabaseName(project: project ?? "")
    if !database.isEmpty { name.database = try text(database, "a database's id") }
    guard !name.project.isEmpty, DatabaseName(name.description) == name else {
      throw .invalidArgument("a key without a project, or with a database that cannot be")
    }
    // Slices of the record would keep all of it.
    lastDatabase = ([Array(app)[...], Array(database)[...]], name)
    return name
  }

  private func text(_ bytes: ArraySlice<UInt8>, _ what: String) throws(StatusError) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .invalidArgument("\(what) is not UTF-8")
    }
    return text
  }
}
