package import DocumentModel
package import StorageEngine

/// The layout of documents and their keys in storage.
///
/// A key consists of the database, the path of the document's collection with an end marker, and
/// the document's ID. The documents of one collection are therefore contiguous and ordered by ID.
/// The documents of their subcollections are not among them but follow the whole collection. Within
/// a collection, the order of keys is the order of names; across collections it is not.
package enum DocumentKeys {
  /// The keyspace of documents, encoded with `BinaryEncoder.append(FirestoreDocument)`.
  package static let keyspace = Keyspace("documents")

  /// Returns the key of a document.
  package static func key(_ name: DocumentName) -> [UInt8] {
    var encoder = KeyEncoder(prefix: collectionPrefix(name.database, name.collection))
    encoder.append(id: name.id)
    return encoder.bytes
  }

  /// Returns the prefix of the keys of all documents of a project.
  package static func projectPrefix(_ project: String) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(text: project)
    return encoder.bytes
  }

  /// Returns the prefix of the keys of all documents of a database.
  package static func databasePrefix(_ database: DatabaseName) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(text: database.project)
    encoder.append(text: database.database)
    return encoder.bytes
  }

  /// Returns the prefix of the keys of a collection's own documents.
  package static func collectionPrefix(
    _ database: DatabaseName,
    _ collection: ResourcePath
  ) -> [UInt8] {
    var encoder = KeyEncoder(prefix: databasePrefix(database))
    encoder.append(path: collection)
    return encoder.bytes
  }

  /// Returns the prefix of the keys of everything below a document; the root is the whole database.
  ///
  /// The document itself is not included. For a collection's path, the prefix covers everything
  /// below the collection's documents, without the documents themselves.
  package static func descendantsPrefix(
    _ database: DatabaseName,
    _ path: ResourcePath
  ) -> [UInt8] {
    var encoder = KeyEncoder(prefix: databasePrefix(database))
    encoder.append(openPath: path)
    return encoder.bytes
  }

  /// Returns the bytes stored for a document.
  package static func encode(_ document: FirestoreDocument) -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(document)
    return encoder.bytes
  }

  /// Decodes a stored document.
  package static func decode(_ bytes: [UInt8]) throws -> FirestoreDocument {
    var decoder = BinaryDecoder(bytes)
    return try decoder.document()
  }

  /// Decodes a stored document's name, times and selected fields.
  static func decode(_ bytes: [UInt8], only selection: FieldSelection) throws -> FirestoreDocument {
    var decoder = BinaryDecoder(bytes)
    guard !selection.isEmpty else { return try decoder.documentWithoutFields() }
    return try decoder.document(only: selection)
  }

  /// Decodes only the name of a stored document.
  package static func decodeName(_ bytes: [UInt8]) throws -> DocumentName {
    var decoder = BinaryDecoder(bytes)
    _ = try decoder.byte()
    return try decoder.documentName()
  }

  /// Returns the parts of a key after a database's prefix; nil if it is not a document's key.
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

  /// Positions within a key.
  struct Parts {
    /// The encoded ID of the collection that holds the document.
    var collectionID: Range<Int>
    /// The position at which the document's ID starts; the collection's prefix ends there.
    var documentsStart: Int
  }

  /// The format in which `KeyEncoder` writes IDs.
  enum Layout {
    static let end: UInt8 = 0x00
    private static let numericID: UInt8 = 0x02
    private static let textID: UInt8 = 0x03

    /// Returns the position after the ID that starts at `start`; nil if there is none.
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
  /// The first key in the range.
  package var from: [UInt8]
  /// The first key after the range.
  package var to: [UInt8]?

  package init(from: [UInt8], to: [UInt8]?) {
    self.from = from
    self.to = to
  }

  /// Creates the range of all keys that start with `prefix`.
  package init(prefix: [UInt8]) {
    self.init(from: prefix, to: keyAfter(prefix: prefix))
  }

  package func contains(_ key: [UInt8]) -> Bool {
    guard ValueOrder.compareBytes(from, key) != .greater else { return false }
    guard let to else { return true }
    return ValueOrder.compareBytes(key, to) == .less
  }

  /// True if the range cannot contain any key.
  var isEmpty: Bool {
    guard let to else { return false }
    return ValueOrder.compareBytes(from, to) != .less
  }

  /// Raises the lower bound.
  package mutating func startAtLeast(_ key: [UInt8]) {
    if ValueOrder.compareBytes(from, key) == .less { from = key }
  }

  /// Removes a key and all keys before it in the direction of reading.
  mutating func pass(_ key: [UInt8], descending: Bool) {
    if descending { endAtMost(key) } else { startAtLeast(key + [0]) }
  }

  /// Lowers the upper bound; nil leaves it unchanged.
  package mutating func endAtMost(_ key: [UInt8]?) {
    guard let key else { return }
    guard let to, ValueOrder.compareBytes(to, key) != .greater else {
      self.to = key
      return
    }
  }
}
