package import DocumentModel

/// The definition of an index over the documents of a collection or group that have all its fields.
///
/// The documents are ordered by the fields and then by name.
package struct IndexDefinition: Sendable, Hashable {
  package var database: DatabaseName
  package var collectionID: String
  package var scope: Scope
  /// The fields; an index without fields orders a group's documents by name.
  package var fields: [Field]
  /// True if documents with equal fields are in descending order of their names.
  package var nameDescending: Bool

  /// Creates a definition; at most one field may be of kind `contains`.
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

  /// Returns true if all parts are equal; collection IDs are compared byte by byte.
  package static func == (left: IndexDefinition, right: IndexDefinition) -> Bool {
    left.database == right.database && left.collectionID.isIdentical(to: right.collectionID)
      && left.scope == right.scope && left.fields == right.fields
      && left.nameDescending == right.nameDescending
  }

  /// The scope of the queries that an index serves: single collections or a collection group.
  package enum Scope: UInt8, Sendable, Hashable {
    /// Each parent's collection separately.
    case collection
    /// All collections with the ID together.
    case group
  }

  /// One field of an index.
  package struct Field: Sendable, Hashable {
    package var path: FieldPath
    package var kind: Kind

    package init(_ path: FieldPath, _ kind: Kind) {
      self.path = path
      self.kind = kind
    }

    /// The way a field's values are indexed.
    package enum Kind: UInt8, Sendable, Hashable {
      case ascending, descending
      /// One entry for each distinct element of an array.
      case contains
    }
  }
}

extension IndexDefinition: CustomStringConvertible {
  /// The collection and fields, for example `cities: state ↑, population ↓`.
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
  /// Encodes the definition for the catalog.
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

  /// Decodes a definition that `encode` wrote.
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
