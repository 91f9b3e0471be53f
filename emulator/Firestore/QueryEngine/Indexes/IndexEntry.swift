import DocumentModel
import StorageEngine

/// One row of an index: a key in the index's order that identifies its document.
///
/// The key consists of the index's ID, the collection's path (only in collection scope), a
/// component for each field, and the name. The name is the ID in collection scope, otherwise the
/// whole path. Values longer than `componentBytesMax` are truncated. Entries that share a truncated
/// component are therefore unordered in it and in all that follows; readers compare their documents
/// instead.
struct IndexEntry: Sendable, Hashable {
  var key: [UInt8]
  /// The position at which the name starts.
  var nameStart: Int
  /// The position at which the document's ID starts.
  var idStart: Int
  /// The end positions of the truncated components, in order; nearly always empty.
  var cutEnds: [Int]

  static let keyspace = Keyspace("index_entries")

  /// The maximum size of a component; production indexes the same number of bytes of a string.
  static let componentBytesMax = KeyEncoder.truncationBytes

  /// Returns the prefix of all entries of an index.
  static func prefix(ofIndex id: UInt64) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(id)
    return encoder.bytes
  }

  /// Returns the prefix of the entries of one collection in an index of collection scope.
  static func prefix(ofIndex id: UInt64, collection: ResourcePath) -> [UInt8] {
    var encoder = KeyEncoder(prefix: prefix(ofIndex: id))
    encoder.append(path: collection)
    return encoder.bytes
  }

  /// One field's part of a key.
  struct Component: Hashable {
    var bytes: [UInt8]
    var isCut: Bool

    /// Creates the component of a value.
    ///
    /// Truncation is at a fixed length, so a truncated component never equals a complete one.
    init(_ value: FirestoreValue, descending: Bool) {
      var encoder = KeyEncoder()
      encoder.append(value, descending: descending)
      isCut = encoder.bytes.count > componentBytesMax
      bytes = isCut ? Array(encoder.bytes.prefix(componentBytesMax)) : encoder.bytes
    }
  }

  /// Returns the entries of a document in an index; none if it lacks one of the fields.
  static func entries(of document: FirestoreDocument, in index: Index) -> [IndexEntry] {
    let definition = index.definition
    var partials = [Partial(bytes: [], cutEnds: [])]
    switch definition.scope {
    case .collection:
      partials[0].bytes = prefix(ofIndex: index.id, collection: document.name.collection)
    case .group: partials[0].bytes = prefix(ofIndex: index.id)
    }
    for field in definition.fields {
      let components = components(of: document, field)
      partials = partials.flatMap { partial in components.map(partial.appending) }
    }
    return partials.map { partial in
      let nameStart = partial.bytes.count
      let (name, idOffset) = nameComponent(of: document.name, definition)
      return IndexEntry(
        key: partial.bytes + name,
        nameStart: nameStart,
        idStart: nameStart + idOffset,
        cutEnds: partial.cutEnds
      )
    }
  }

  private struct Partial {
    var bytes: [UInt8]
    var cutEnds: [Int]

    func appending(_ component: Component) -> Partial {
      let bytes = bytes + component.bytes
      return Partial(bytes: bytes, cutEnds: component.isCut ? cutEnds + [bytes.count] : cutEnds)
    }
  }

  private static func components(
    of document: FirestoreDocument,
    _ field: IndexDefinition.Field
  ) -> Set<Component> {
    guard let value = document.value(at: field.path) else { return [] }
    switch field.kind {
    case .ascending: return [Component(value, descending: false)]
    case .descending: return [Component(value, descending: true)]
    case .contains:
      guard case .array(let elements) = value else { return [] }
      return Set(elements.map { Component($0, descending: false) })
    }
  }

  /// Returns the name's part of a key and the offset of the ID in it.
  static func nameComponent(
    of name: DocumentName,
    _ definition: IndexDefinition
  ) -> (bytes: [UInt8], idOffset: Int) {
    var encoder = KeyEncoder()
    var idOffset = 0
    if definition.scope == .group {
      encoder.append(openPath: name.collection)
      idOffset = encoder.bytes.count
    }
    encoder.append(id: name.id)
    if definition.scope == .group {
      // The end marker, which sorts before any further segment.
      encoder.append(raw: [DocumentKeys.Layout.end])
    }
    let bytes = definition.nameDescending ? encoder.bytes.map { ~$0 } : encoder.bytes
    return (bytes, idOffset)
  }

  /// The stored value: the positions that cannot be read from the key without parsing it.
  var value: [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(UInt64(nameStart))
    encoder.append(UInt64(idStart))
    for end in cutEnds { encoder.append(UInt64(end)) }
    return encoder.bytes
  }

  /// Decodes a stored entry.
  init(key: [UInt8], value: [UInt8]) throws {
    var decoder = BinaryDecoder(value)
    func position() throws -> Int {
      let number = try decoder.number()
      guard number <= UInt64(key.count) else { throw CorruptDataError("position beyond an entry") }
      return Int(number)
    }
    self.key = key
    nameStart = try position()
    idStart = try position()
    cutEnds = []
    guard nameStart <= idStart, idStart < key.count else {
      throw CorruptDataError("index entry without a name")
    }
    while !decoder.isAtEnd { cutEnds.append(try position()) }
  }

  private init(key: [UInt8], nameStart: Int, idStart: Int, cutEnds: [Int]) {
    self.key = key
    self.nameStart = nameStart
    self.idStart = idStart
    self.cutEnds = cutEnds
  }

  /// Returns the key of the entry's document.
  ///
  /// `prefix` is the collection's prefix in collection scope and the database's in group scope.
  func documentKey(_ definition: IndexDefinition, prefix: [UInt8]) -> [UInt8] {
    let flip: UInt8 = definition.nameDescending ? 0xFF : 0
    var result = prefix
    result.reserveCapacity(prefix.count + key.count - nameStart + 1)
    if definition.scope == .group {
      for byte in key[nameStart..<idStart] { result.append(byte ^ flip) }
      result.append(DocumentKeys.Layout.end)
      for byte in key[idStart..<key.count - 1] { result.append(byte ^ flip) }
    } else {
      for byte in key[idStart...] { result.append(byte ^ flip) }
    }
    return result
  }
}
