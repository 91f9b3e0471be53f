package import DocumentModel

/// The size of a document as it counts toward the limit of 1 MiB.
///
/// This is the formula of "Storage size calculations" in Firestore's documentation; it is unrelated
/// to the bytes that the storage engine uses.
package enum StorageSize {
  /// Returns the size of a document including its name.
  package static func document(_ name: DocumentName, _ fields: MapValue) -> Int {
    self.name(name) + map(fields) + documentOverhead
  }

  /// Returns the size of a document's name: the sizes of its IDs, plus 16 bytes.
  ///
  /// A numeric document ID counts 8 bytes.
  package static func name(_ name: DocumentName) -> Int {
    var size = nameOverhead
    for (index, segment) in name.path.segments.enumerated() {
      let isDocumentID = !index.isMultiple(of: 2)
      size +=
        isDocumentID && ValueOrder.numericID(segment) != nil ? 8 : segment.utf8.count + 1
    }
    return size
  }

  package static func value(_ value: FirestoreValue) -> Int {
    switch value {
    case .null, .boolean: 1
    case .integer, .double, .timestamp: 8
    case .string(let text): text.utf8.count + 1
    case .bytes(let data): data.count
    case .reference(let name): self.name(name)
    case .geoPoint: 16
    case .array(let elements): elements.reduce(0) { $0 + self.value($1) }
    case .vector(let elements): elements.count * 8
    case .map(let fields): map(fields)
    }
  }

  private static func map(_ fields: MapValue) -> Int {
    fields.reduce(0) { $0 + $1.key.utf8.count + 1 + value($1.value) }
  }

  private static let documentOverhead = 32
  private static let nameOverhead = 16
}
