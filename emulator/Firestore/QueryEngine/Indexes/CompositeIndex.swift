package import DocumentModel

/// An index as production defines it and as `firestore.indexes.json` declares it.
///
/// It may have a single field; production maintains single-field indexes of collections
/// automatically.
package struct CompositeIndex: Sendable, Hashable {
  package var collectionID: String
  package var scope: IndexDefinition.Scope
  /// The fields, excluding the name.
  package var fields: [Field]
  /// True if documents with equal fields are in descending order of their names.
  package var nameDescending: Bool

  /// One field of an index.
  package struct Field: Sendable, Hashable {
    package var path: FieldPath
    package var kind: Kind

    package init(_ path: FieldPath, _ kind: Kind) {
      self.path = path
      self.kind = kind
    }

    /// Creates the counterpart of a field of this store's own indexes.
    init(_ field: IndexDefinition.Field) {
      let kind: Kind =
        switch field.kind {
        case .ascending: .ascending
        case .descending: .descending
        case .contains: .contains
        }
      self.init(field.path, kind)
    }

    /// The way a field's values are indexed.
    package enum Kind: Sendable, Hashable {
      case ascending, descending, contains
      case vector(dimension: Int)
    }
  }

  /// Creates an index; by default its names follow the direction of its last field.
  package init(
    collectionID: String,
    scope: IndexDefinition.Scope,
    fields: [Field],
    nameDescending: Bool? = nil
  ) {
    self.collectionID = collectionID
    self.scope = scope
    self.fields = fields
    self.nameDescending = nameDescending ?? (fields.last?.kind == .descending)
  }

  /// The fields in the format of production's query plans.
  ///
  /// For example `(state ASC, population DESC, __name__ DESC)`.
  package var properties: String {
    var parts = fields.map { field in
      switch field.kind {
      case .ascending: "\(field.path) ASC"
      case .descending: "\(field.path) DESC"
      case .contains: "\(field.path) CONTAINS"
      case .vector(let dimension): "\(field.path) VECTOR<\(dimension)>"
      }
    }
    // Vectors come last.
    parts.insert(
      "__name__ \(nameDescending ? "DESC" : "ASC")",
      at: isOfVectors ? parts.count - 1 : parts.count
    )
    return "(\(parts.joined(separator: ", ")))"
  }

  /// True for a single-field index, which production maintains automatically or an override adds.
  package var isOfOneField: Bool {
    fields.count == 1 && !isOfVectors && nameDescending == (fields.last?.kind == .descending)
  }

  /// True if the index serves nearest-neighbor searches.
  package var isOfVectors: Bool {
    if case .vector = fields.last?.kind { true } else { false }
  }
}
