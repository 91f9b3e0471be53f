import DocumentModel

/// The fields of a write, divided into stored values, deletions and transforms.
struct FieldWrites {
  private(set) var fields: MapValue = [:]
  /// The paths of the innermost stored values.
  ///
  /// An empty map counts as a value.
  private(set) var leaves: [FieldPath] = []
  private(set) var deletions: [FieldPath] = []
  private(set) var transforms: [FieldTransform] = []

  /// Divides the fields of a document, whose keys are field names and not paths.
  init(_ fields: [NamedFieldValue]) throws {
    for (key, value) in FieldValue.sorted(fields) { try add(value, at: FieldPath([key])) }
  }

  private mutating func add(_ value: FieldValue, at path: FieldPath) throws {
    switch value.kind {
    case .value(let value): addPlain(value, at: path)
    case .array: addPlain(try value.plain(at: path), at: path)
    case .transform(let kind): transforms.append(FieldTransform(path, kind))
    case .delete: deletions.append(path)
    case .failure(let error): throw error
    case .map(let entries):
      if entries.isEmpty { return addPlain(.map([:]), at: path) }
      for (key, entry) in FieldValue.sorted(Array(entries)) {
        try add(entry, at: FieldPath(path.segments + [key]))
      }
    }
  }

  private mutating func addPlain(_ value: FirestoreValue, at path: FieldPath) {
    fields.set(value, at: path)
    addLeaves(of: value, at: path)
  }

  private mutating func addLeaves(of value: FirestoreValue, at path: FieldPath) {
    guard case .map(let entries) = value, !entries.isEmpty else { return leaves.append(path) }
    for (key, entry) in entries { addLeaves(of: entry, at: FieldPath(path.segments + [key])) }
  }

  //MARK: Kinds of writes

  /// Returns a write that replaces the whole document; throws if a field is to be deleted.
  func replacement(of name: DocumentName, precondition: Precondition) throws -> Write {
    if let deletion = deletions.first {
      throw FirestoreError(
        .invalidArgument,
        "\(deletion) cannot be deleted here: the whole document is replaced; merge or update"
      )
    }
    return Write(
      .update(name, fields: fields, mask: nil, transforms: transforms),
      precondition: precondition
    )
  }

  /// Returns a write of the given fields, or only of those at `paths`, that keeps other fields.
  func merge(into name: DocumentName, only paths: [FieldPath]?) throws -> Write {
    guard let paths else {
      return Write(
        .update(name, fields: fields, mask: leaves + deletions, transforms: transforms)
      )
    }
    func isChosen(_ path: FieldPath) -> Bool {
      paths.contains { path.isBelowOrEqual(to: $0) }
    }
    var chosen: MapValue = [:]
    var mask: [FieldPath] = []
    for path in paths {
      let value = fields[path]
      let isComputed = transforms.contains { $0.path.isBelowOrEqual(to: path) }
      let isDeleted = deletions.contains { $0.isBelowOrEqual(to: path) }
      guard value != nil || isComputed || isDeleted else {
        throw FirestoreError(.invalidArgument, "\(path) is to be merged but is not in the data")
      }
      if let value {
        chosen.set(value, at: path)
        mask.append(path)
      } else if isDeleted {
        mask += deletions.filter { $0.isBelowOrEqual(to: path) }
      }
    }
    return Write(
      .update(
        name,
        fields: chosen,
        mask: mask,
        transforms: transforms.filter { isChosen($0.path) }
      )
    )
  }

  /// Returns a write of the fields at the given paths in a document that must exist.
  static func update(
    of name: DocumentName,
    _ fields: [(path: FieldPath, value: FieldValue)],
    lastUpdated: Timestamp?
  ) throws -> Write {
    guard !fields.isEmpty else {
      throw FirestoreError(.invalidArgument, "an update needs at least one field")
    }
    try refuseOverlaps(fields.map(\.path))
    var stored: MapValue = [:]
    var mask: [FieldPath] = []
    var transforms: [FieldTransform] = []
    for (path, value) in fields {
      switch value.kind {
      case .transform(let kind): transforms.append(FieldTransform(path, kind))
      case .delete: mask.append(path)
      case .failure(let error): throw error
      case .value, .array, .map:
        let (plain, nested) = try value.split(at: path)
        if let plain {
          stored.set(plain, at: path)
          mask.append(path)
        }
        transforms += nested
      }
    }
    return Write(
      .update(name, fields: stored, mask: mask, transforms: transforms),
      precondition: lastUpdated.map { .updateTime($0) } ?? .exists(true)
    )
  }

  private static func refuseOverlaps(_ paths: [FieldPath]) throws {
    // In sorted order, the paths below a path follow it immediately.
    let sorted = paths.sorted()
    for (upper, lower) in zip(sorted, sorted.dropFirst()) where lower.isBelowOrEqual(to: upper) {
      throw FirestoreError(.invalidArgument, "\(upper) and \(lower) cannot be updated at once")
    }
  }
}

extension FieldValue {
  /// Returns the value without transforms, which arrays cannot contain; throws if it has any.
  fileprivate func plain(at path: FieldPath) throws -> FirestoreValue {
    switch kind {
    case .value(let value): return value
    case .array(let elements): return .array(try elements.map { try $0.plain(at: path) })
    case .map(let entries):
      return .map(MapValue(try entries.map { ($0.key, try $0.value.plain(at: path)) }))
    case .failure(let error): throw error
    case .transform, .delete:
      throw FirestoreError(
        .invalidArgument,
        "\(path) is an array, in which nothing can be computed or deleted"
      )
    }
  }

  /// Splits the value into its stored part and the transforms inside its maps.
  ///
  /// The stored part is nil if the value consists of transforms only. Then other stored fields of
  /// the same map stay.
  fileprivate func split(at path: FieldPath) throws -> (FirestoreValue?, [FieldTransform]) {
    guard case .map(let entries) = kind, !entries.isEmpty else { return (try plain(at: path), []) }
    var fields: MapValue = [:]
    var transforms: [FieldTransform] = []
    for (key, entry) in Self.sorted(Array(entries)) {
      let place = FieldPath(path.segments + [key])
      switch entry.kind {
      case .transform(let kind): transforms.append(FieldTransform(place, kind))
      case .delete:
        throw FirestoreError(
          .invalidArgument,
          "\(place) cannot be deleted inside a map; give its path as a key of the update"
        )
      default:
        let (value, nested) = try entry.split(at: place)
        if let value { fields[key] = value }
        transforms += nested
      }
    }
    return (fields.isEmpty ? nil : .map(fields), transforms)
  }
}

/// A field of a document to write.
///
/// This is not a dictionary entry, because Swift considers some field names equal that Firestore
/// distinguishes.
typealias NamedFieldValue = (key: String, value: FieldValue)

extension FieldValue {
  /// Sorts fields by the bytes of their names, so that equal writes have equal encodings.
  static func sorted(_ fields: [NamedFieldValue]) -> [NamedFieldValue] {
    fields.sorted { ValueOrder.compareText($0.key, $1.key) == .less }
  }
}

extension FieldPath {
  /// Parses a path; throws an error that quotes the text if it is invalid.
  static func parse(_ text: String) throws(FirestoreError) -> FieldPath {
    guard let path = FieldPath(clientText: text) else {
      throw FirestoreError(
        .invalidArgument,
        "\"\(text)\" is not a field path; put unusual names between backquotes"
      )
    }
    return path
  }
}
