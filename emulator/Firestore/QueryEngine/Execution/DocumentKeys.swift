package import DocumentModel
package import StorageEngine

/// Where documents lie in storage, and how their keys are read.
///
/// A key is the database, the path of the document's collection with an end, and the document's
/// id. So the documents of one collection are contiguous, in order of their ids and without those
/// of their subcollections, which follow the whole collection. Within a collection the order of
/// keys is the order of names; across collections it is not.
package enum DocumentKeys {
  /// The keyspace; its values are `BinaryEncoder.append(FirestoreDocument)`.
  package static let keyspace = Keyspace("documents")

  /// The key of one document.
  package static func key(_ name: DocumentName) -> [UInt8] {
    var encoder = KeyEncoder(prefix: collectionPrefix(name.database, name.collection))
    encoder.append(id: name.id)
    return encoder.bytes
  }

  /// What the keys of all documents of a project start with.
  package static func projectPrefix(_ project: String) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(text: project)
    return encoder.bytes
  }

  /// What the keys of all documents of a database start with.
  package static func databasePrefix(_ database: DatabaseName) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(text: database.project)
    encoder.append(text: database.database)
    return encoder.bytes
  }

  /// What the keys of a collection's own documents start with.
  package static func collectionPrefix(
    _ database: DatabaseName,
    _ collection: ResourcePath
  ) -> [UInt8] {
    var encoder = KeyEncoder(prefix: databasePrefix(database))
    encoder.append(path: collection)
    return encoder.bytes
  }

  /// What the keys of everything below a document start with; the root is the whole database.
  ///
  /// The document itself is not among them. For a collection's path the prefix covers everything
  /// below the collection's documents, without the documents.
  package static func descendantsPrefix(
    _ database: DatabaseName,
    _ path: ResourcePath
  ) -> [UInt8] {
    var encoder = KeyEncoder(prefix: databasePrefix(database))
    encoder.append(openPath: path)
    return encoder.bytes
  }

  /// The bytes stored for a document.
  package static func encode(_ document: FirestoreDocument) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(document)
    return encoder.bytes
  }

  /// Reads a stored document.
  package static func decode(_ bytes: [UInt8]) throws -> FirestoreDocument {
    var decoder = BinaryDecoder(bytes)
    return try decoder.document()
  }

  /// Reads a stored document's name, times and selected fields.
  static func decode(_ bytes: [UInt8], only selection: FieldSelection) throws -> FirestoreDocument {
    var decoder = BinaryDecoder(bytes)
    guard !selection.isEmpty else { return try decoder.documentWithoutFields() }
    return try decoder.document(only: selection)
  }

  /// Reads only the name of a stored document.
  package static func decodeName(_ bytes: [UInt8]) throws -> DocumentName {
    var decoder = BinaryDecoder(bytes)
    _ = try decoder.byte()
    return try decoder.documentName()
  }

  /// The parts of a key that lie after a database's prefix; nil when it is not a document's key.
  static func parts(of key: [UInt8], after databasePrefixCount: Int) -> Parts? {
    var index = databasePrefixCount
    var collectionID = index..<index
    while index < key.count, key[index] != Layout.end {
      guard let next = Layout.endOfID(in: key, from: index) else { return nil }
      collectionID = index..<next
      index = next
    }
    guard index < key.count, !collectionID.isEmpty else { return nil }
    return Parts(collectionID: collectionID, documentsStart: index + 1)
  }

  /// Positions inside a key.
  struct Parts {
    /// The encoded id of the collection that holds the document.
    var collectionID: Range<Int>
    /// Where the document's id starts; what precedes it is the collection's prefix.
    var documentsStart: Int
  }

  /// How `KeyEncoder` writes ids.
  enum Layout {
    static let end: UInt8 = 0x00
    private static let numericID: UInt8 = 0x02
    private static let textID: UInt8 = 0x03

    /// The position after the id that starts at `start`, or nil when there is none.
    static func endOfID(in key: [UInt8], from start: Int) -> Int? {
      switch key[start] {
      case numericID:
        return start + 9 <= key.count ? start + 9 : nil
      case textID:
        var index = start + 1
        while index + 1 < key.count {
          if key[index] == 0x00 {
            if key[index + 1] == 0x01 { return index + 2 }
            index += 2
          } else {
            index += 1
          }
        }
        return nil
      default:
        return nil
      }
    }
  }
}

/// A half-open range of keys; a nil end is unbounded.
package struct KeyRange: Sendable, Hashable {
  /// The first key included.
  package var from: [UInt8]
  /// The first key no longer included.
  package var to: [UInt8]?

  /// The keys from `from` up to `to`.
  package init(from: [UInt8], to: [UInt8]?) {
    self.from = from
    self.to = to
  }

  /// The keys that start with `prefix`.
  package init(prefix: [UInt8]) {
    self.init(from: prefix, to: keyAfter(prefix: prefix))
  }

  /// Whether a key lies in the range.
  package func contains(_ key: [UInt8]) -> Bool {
    guard ValueOrder.compareBytes(from, key) != .greater else { return false }
    guard let to else { return true }
    return ValueOrder.compareBytes(key, to) == .less
  }

  /// Whether nothing can lie in the range.
  var isEmpty: Bool {
    guard let to else { return false }
    return ValueOrder.compareBytes(from, to) != .less
  }

  /// Raises the lower bound.
  package mutating func startAtLeast(_ key: [UInt8]) {
    if ValueOrder.compareBytes(from, key) == .less { from = key }
  }

  /// Takes away a key of the range and all that comes before it in the direction of reading.
  mutating func pass(_ key: [UInt8], descending: Bool) {
    if descending { endAtMost(key) } else { startAtLeast(key + [0]) }
  }

  /// Lowers the upper bound; nil changes nothing.
  package mutating func endAtMost(_ key: [UInt8]?) {
    guard let key else { return }
    guard let to, ValueOrder.compareBytes(to, key) != .greater else {
      self.to = key
      return
    }
  }
}
