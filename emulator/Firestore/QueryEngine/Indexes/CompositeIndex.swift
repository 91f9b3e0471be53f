package import DocumentModel

/// An index as production knows it, and as `firestore.indexes.json` declares it.
///
/// A single field is one too: production keeps those of collections by itself.
package struct CompositeIndex: Sendable, Hashable {
  package var collectionID: String
  package var scope: IndexDefinition.Scope
  /// The fields, without the name.
  package var fields: [Field]
  /// Whether documents with equal fields are in descending order of their names.
  package var nameDescending: Bool

  /// One field of an index.
  package struct Field: Sendable, Hashable {
    package var path: FieldPath
    package var kind: Kind

    /// A field that is held in the given way.
    package init(_ path: FieldPath, _ kind: Kind) {
      self.path = path
      self.kind = kind
    }

    /// A field as an index of this store holds it.
    init(_ field: IndexDefinition.Field) {
      let kind: Kind =
        switch field.kind {
        case .ascending: .ascending
        case .descending: .descending
        case .contains: .contains
        }
      self.init(field.path, kind)
    }

    /// How a field's value is held.
    package enum Kind: Sendable, Hashable {
      case ascending, descending, contains
      case vector(dimension: Int)
    }
  }

  /// An index whose names follow the direction of its last field, unless told otherwise.
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

  /// Such as `(state ASC, population DESC, __name__ DESC)`, in the words of production's plans.
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

  /// Whether it is one of those that production keeps by itself, or that an override adds.
  package var isOfOneField: Bool {
    fields.count == 1 && !isOfVectors && nameDescending == (fields.last?.kind == .descending)
  }

  /// Whether it serves searches for nearest vectors.
  package var isOfVectors: Bool {
    if case .vector = fields.last?.kind { true } else { false }
  }
}
