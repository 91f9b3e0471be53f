import DocumentModel
import StorageEngine

/// One row of an index: a key in the index's order that leads back to its document.
///
/// The key is the index's number, in collection scope the collection's path, a component for each
/// field, and the name: the id in collection scope, else the whole path. Values longer than
/// `componentBytesMax` are cut, so entries that share a cut component tie there and in all that
/// follows; readers compare their documents instead.
struct IndexEntry: Sendable, Hashable {
  var key: [UInt8]
  /// Where the name starts.
  var nameStart: Int
  /// Where the document's id starts.
  var idStart: Int
  /// Where each cut component ends, in order; nearly always none.
  var cutEnds: [Int]

  static let keyspace = Keyspace("index_entries")

  /// The bytes of a component; production indexes as many of a string.
  static let componentBytesMax = KeyEncoder.truncationBytes

  /// What all entries of an index start with.
  static func prefix(ofIndex id: UInt64) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(id)
    return encoder.bytes
  }

  /// What the entries of one collection in an index of collection scope start with.
  static func prefix(ofIndex id: UInt64, collection: ResourcePath) -> [UInt8] {
    var encoder = KeyEncoder(prefix: prefix(ofIndex: id))
    encoder.append(path: collection)
    return encoder.bytes
  }

  /// One field's part of a key.
  struct Component: Hashable {
    var bytes: [UInt8]
    var isCut: Bool

    /// The part for a value.
    ///
    /// The cut is at a fixed length, so a cut component and a whole one never share all bytes.
    init(_ value: FirestoreValue, descending: Bool) {
      var encoder = KeyEncoder()
      encoder.append(value, descending: descending)
      isCut = encoder.bytes.count > componentBytesMax
      bytes = isCut ? Array(encoder.bytes.prefix(componentBytesMax)) : encoder.bytes
    }
  }

  /// The entries of a document in an index; none when it lacks one of the fields.
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

  /// The name's part of a key and where the id starts in it.
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
      // The end marker, which sorts before every further segment.
      encoder.append(raw: [DocumentKeys.Layout.end])
    }
    let bytes = definition.nameDescending ? encoder.bytes.map { ~$0 } : encoder.bytes
    return (bytes, idOffset)
  }

  /// The stored value: all that cannot be read from the key without parsing it.
  var value: [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(UInt64(nameStart))
    encoder.append(UInt64(idStart))
    for end in cutEnds { encoder.append(UInt64(end)) }
    return encoder.bytes
  }

  /// Reads a stored entry.
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

  /// Memberwise, for `entries`.
  private init(key: [UInt8], nameStart: Int, idStart: Int, cutEnds: [Int]) {
    self.key = key
    self.nameStart = nameStart
    self.idStart = idStart
    self.cutEnds = cutEnds
  }

  /// The key of the entry's document.
  ///
  /// `prefix` is the collection's in collection scope and the database's in group scope.
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
