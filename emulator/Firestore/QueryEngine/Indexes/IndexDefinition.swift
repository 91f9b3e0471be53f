package import DocumentModel

/// What an index holds: the documents of a collection or group that have all of its fields.
///
/// They are ordered by the fields and then by name.
package struct IndexDefinition: Sendable, Hashable {
  package var database: DatabaseName
  package var collectionID: String
  package var scope: Scope
  /// The fields; with none, the index orders a group's documents by name.
  package var fields: [Field]
  /// Whether documents with equal fields are in descending order of their names.
  package var nameDescending: Bool

  /// A definition; at most one field may be of kind `contains`.
  package init(
    database: DatabaseName,
    collectionID: String,
    scope: Scope,
    fields: [Field],
    nameDescending: Bool = false
  ) {
    self.database = database
    self.collectionID = collectionID
    self.scope = scope
    self.fields = fields
    self.nameDescending = nameDescending
  }

  /// Whether all is the same, the collection's id byte by byte.
  package static func == (left: IndexDefinition, right: IndexDefinition) -> Bool {
    left.database == right.database && left.collectionID.isIdentical(to: right.collectionID)
      && left.scope == right.scope && left.fields == right.fields
      && left.nameDescending == right.nameDescending
  }

  /// Whether an index serves queries over one collection or over the group.
  package enum Scope: UInt8, Sendable, Hashable {
    /// Each parent's collection by itself.
    case collection
    /// All collections of the id together.
    case group
  }

  /// One field of an index.
  package struct Field: Sendable, Hashable {
    package var path: FieldPath
    package var kind: Kind

    /// A field in the given order or as array elements.
    package init(_ path: FieldPath, _ kind: Kind) {
      self.path = path
      self.kind = kind
    }

    /// How a field's value is held.
    package enum Kind: UInt8, Sendable, Hashable {
      case ascending, descending
      /// One entry for each distinct element of an array.
      case contains
    }
  }
}

extension IndexDefinition: CustomStringConvertible {
  /// Such as `cities: state ↑, population ↓`.
  package var description: String {
    let group = scope == .group ? " (collection group)" : ""
    let parts =
      fields.map { field in
        switch field.kind {
        case .ascending: "\(field.path) ↑"
        case .descending: "\(field.path) ↓"
        case .contains: "\(field.path) ∋"
        }
      } + (nameDescending ? ["__name__ ↓"] : fields.isEmpty ? ["__name__ ↑"] : [])
    return "\(collectionID)\(group): \(parts.joined(separator: ", "))"
  }
}

extension IndexDefinition {
  /// Writes the definition for the catalogue.
  func encode(to encoder: inout BinaryEncoder) {
    encoder.append(database.project)
    encoder.append(database.database)
    encoder.append(collectionID)
    encoder.append(byte: scope.rawValue)
    encoder.append(byte: nameDescending ? 1 : 0)
    encoder.append(UInt64(fields.count))
    for field in fields {
      encoder.append(byte: field.kind.rawValue)
      encoder.append(UInt64(field.path.segments.count))
      for segment in field.path.segments { encoder.append(segment) }
    }
  }

  /// Reads what `encode` wrote.
  init(from decoder: inout BinaryDecoder) throws(CorruptDataError) {
    database = DatabaseName(project: try decoder.text(), database: try decoder.text())
    collectionID = try decoder.text()
    guard let scope = Scope(rawValue: try decoder.byte()) else {
      throw CorruptDataError("unknown scope of an index")
    }
    self.scope = scope
    nameDescending = try decoder.byte() == 1
    fields = []
    for _ in 0..<(try decoder.count()) {
      guard let kind = Field.Kind(rawValue: try decoder.byte()) else {
        throw CorruptDataError("unknown kind of an index's field")
      }
      var segments: [String] = []
      for _ in 0..<(try decoder.count()) { segments.append(try decoder.text()) }
      guard !segments.isEmpty else { throw CorruptDataError("an index's field without a path") }
      fields.append(Field(FieldPath(segments), kind))
    }
  }
}
