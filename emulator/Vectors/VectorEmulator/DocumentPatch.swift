import JSONText
import StatusCodes
import VectorIndex

/// The changes of a request to a document: its vector, other fields, and fields to remove.
struct DocumentPatch: Sendable {
  private(set) var id = ""
  private(set) var values: [Float]?
  private(set) var metadata: [String: MetadataValue] = [:]
  private var removed: [String] = []

  /// Reads a document or a change to it.
  ///
  /// Its fields include `_id`, and optionally `_remove_fields`.
  init(_ document: RequestFields, _ index: VectorIndexDescription) throws {
    id = try document.required("_id", document.string("_id"))
    try VectorCatalog.check(id: id)
    var fields = document.members
    fields["_id"] = nil
    fields["_remove_fields"] = nil
    try read(fields, removing: document.strings("_remove_fields") ?? [], index)
  }

  /// Creates one change for many documents.
  init(set fields: [String: JSONValue], remove names: [String], _ index: VectorIndexDescription)
    throws
  {
    try read(fields, removing: names, index)
  }

  /// Changes a record; fields that the patch does not name stay unchanged.
  func apply(to record: inout VectorRecord) {
    if let values { record.values = values }
    record.metadata.merge(metadata) { $1 }
    for name in removed { record.metadata[name] = nil }
  }

  private mutating func read(
    _ fields: [String: JSONValue],
    removing names: [String],
    _ index: VectorIndexDescription
  ) throws {
    for (name, json) in fields {
      if name == index.field {
        guard case .numbers(let numbers) = json else { throw wrongVector(index, json) }
        values = numbers.map { Float($0) }
        continue
      }
      guard !name.isEmpty, !name.hasPrefix("_"), !name.hasPrefix("$") else {
        throw StatusError.invalidArgument(
          "Field '\(name)'\(inDocument) has a reserved name: names are not empty and do not start "
            + "with _ or $."
        )
      }
      guard let value = MetadataValue(json) else {
        throw StatusError.invalidArgument(
          "Field '\(name)'\(inDocument) is not in the index schema, so it must be a boolean, number, "
            + "string, or array of strings, got \(json.kind)"
        )
      }
      metadata[name] = value
    }
    let both = names.filter { fields[$0] != nil }.sorted()
    guard both.isEmpty else {
      throw StatusError.invalidArgument(
        "Fields cannot be both set and removed in the same update: \(both.joined(separator: ", "))"
      )
    }
    guard !names.contains(index.field) else {
      throw StatusError.invalidArgument(
        "Field '\(index.field)' is required by the index schema and cannot be removed."
      )
    }
    removed = names
  }

  private var inDocument: String { id.isEmpty ? "" : " of document '\(id)'" }

  private func wrongVector(_ index: VectorIndexDescription, _ json: JSONValue) -> StatusError {
    .invalidArgument(
      "Field '\(index.field)'\(inDocument) is a dense_vector with dimension \(index.dimension); it "
        + "must be a list of numbers, got \(json.kind)"
    )
  }
}

/// The document fields that a response includes.
struct IncludedFields {
  private let names: Set<String>
  private let all: Bool

  /// Creates a selection of the named fields; `*` selects all fields.
  init(_ names: [String], emptyIsAll: Bool) {
    self.names = Set(names)
    all = names.contains("*") || (names.isEmpty && emptyIsAll)
  }

  /// Indicates whether the response includes a field.
  func contains(_ name: String) -> Bool { all || names.contains(name) }

  /// Returns a document's id and the included fields as JSON members.
  func members(of record: VectorRecord, _ index: VectorIndexDescription) -> [String: JSONValue] {
    var members: [String: JSONValue] = ["_id": .string(record.id)]
    for (name, value) in record.metadata where contains(name) { members[name] = value.json }
    if contains(index.field) { members[index.field] = .floats(record.values) }
    return members
  }
}
