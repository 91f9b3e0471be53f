import JSONText
import DocumentModel
package import StatusCodes

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The indexes declared in a project's `firestore.indexes.json` and those that every project has.
///
/// The file format is that of the Firebase CLI. A field override replaces the indexes that
/// production maintains automatically for a field; an empty override exempts the field.
package struct DeclaredIndexes: Sendable, Hashable {
  package var composites: [CompositeIndex]
  /// The single-field indexes of overridden fields, by collection and field; `*` is every field.
  private var overrides: [Override: Set<Single>]

  private struct Override: Sendable, Hashable {
    var collectionID: String
    var path: String
  }

  private struct Single: Sendable, Hashable {
    var scope: IndexDefinition.Scope
    var kind: CompositeIndex.Field.Kind
  }

  /// Creates declared composite indexes together with the usual automatic single-field indexes.
  package init(composites: [CompositeIndex] = []) {
    self.composites = composites
    overrides = [:]
  }

  /// Parses a file's contents; throws `INVALID_ARGUMENT` that names the problem.
  package init(json: Data) throws(StatusError) {
    let file: File
    do {
      file = try File(decodingJSON: json)
    } catch let error as DecodingError {
      throw .invalidArgument("The indexes are malformed: \(Self.complaint(error))")
    } catch {
      throw .invalidArgument("The indexes are malformed: \(error)")
    }
    guard file.indexes != nil || file.fieldOverrides != nil else {
      throw .invalidArgument(
        "The indexes are malformed: the file has neither indexes nor fieldOverrides."
      )
    }
    composites = []
    overrides = [:]
    for index in file.indexes ?? [] { composites.append(try index.composite()) }
    for override in file.fieldOverrides ?? [] {
      var singles: Set<Single> = []
      for index in override.indexes {
        singles.insert(Single(scope: try scope(index.queryScope), kind: try index.kind("indexes")))
      }
      let key = Override(collectionID: override.collectionGroup, path: override.fieldPath)
      overrides[key, default: []].formUnion(singles)
    }
  }

  /// Returns true if the indexes serve a query's need.
  package func serve(_ need: IndexNeed) -> Bool {
    let bound = Set(need.bound)
    if need.vector != nil {
      return composites.contains { index in
        index.collectionID == need.collectionID && index.scope == need.scope
          && index.fields.last == need.vector
          && Self.isPrefix(index.fields.dropLast(), of: bound)
          && index.fields.count == bound.count + 1
      }
    }
    if bound.isEmpty && need.orders.isEmpty { return !need.nameDescending || has(need.composite) }
    // Each index with the need's order covers some of the bound fields; together they must cover
    // all.
    var given: Set<CompositeIndex.Field> = []
    var isOrdered = false
    for index in composites
    where index.collectionID == need.collectionID && index.scope == need.scope {
      let tail = index.fields.suffix(need.orders.count)
      let prefix = index.fields.dropLast(tail.count)
      guard Self.gives(tail, index.nameDescending, need), Self.isPrefix(prefix, of: bound) else {
        continue
      }
      isOrdered = true
      given.formUnion(prefix.map(Self.boundForm))
    }
    if need.orders.isEmpty {
      for field in bound where !need.nameDescending && has(field.kind, of: field.path, need) {
        isOrdered = true
        given.insert(field)
      }
    } else if need.orders.count == 1, let order = need.orders.first,
      order.descending == need.nameDescending,
      has(order.descending ? .descending : .ascending, of: order.path, need)
    {
      isOrdered = true
    }
    return isOrdered && given.isSuperset(of: bound)
  }

  /// Returns true if an index is among the declared composite indexes.
  ///
  /// The order of fields bound to values does not matter.
  func contains(_ definition: IndexDefinition) -> Bool {
    composites.contains { index in
      index.collectionID.isIdentical(to: definition.collectionID)
        && index.scope == definition.scope && index.nameDescending == definition.nameDescending
        && index.fields.count == definition.fields.count
        && Set(index.fields) == Set(definition.fields.map(CompositeIndex.Field.init))
        && index.fields.last == definition.fields.last.map(CompositeIndex.Field.init)
    }
  }

  private func has(_ index: CompositeIndex) -> Bool { composites.contains(index) }

  /// Returns true if an index's last fields have the need's order.
  ///
  /// Production does not read indexes backwards.
  private static func gives(
    _ tail: ArraySlice<CompositeIndex.Field>,
    _ nameDescending: Bool,
    _ need: IndexNeed
  ) -> Bool {
    tail.count == need.orders.count && nameDescending == need.nameDescending
      && zip(tail, need.orders).allSatisfy { field, order in
        field.path == order.path && field.kind == (order.descending ? .descending : .ascending)
      }
  }

  /// Returns true if all fields are bound; the direction of a bound field does not matter.
  private static func isPrefix(
    _ fields: ArraySlice<CompositeIndex.Field>,
    of bound: Set<CompositeIndex.Field>
  ) -> Bool {
    fields.allSatisfy { bound.contains(boundForm($0)) }
  }

  private static func boundForm(_ field: CompositeIndex.Field) -> CompositeIndex.Field {
    field.kind == .descending ? .init(field.path, .ascending) : field
  }

  /// Returns true if there is a single-field index, automatic or from an override.
  private func has(
    _ kind: CompositeIndex.Field.Kind,
    of path: FieldPath,
    _ need: IndexNeed
  ) -> Bool {
    let own = Override(collectionID: need.collectionID, path: path.description)
    let every = Override(collectionID: need.collectionID, path: "*")
    guard let singles = overrides[own] ?? overrides[every] else { return need.scope == .collection }
    return singles.contains(Single(scope: need.scope, kind: kind))
  }

  private static func complaint(_ error: DecodingError) -> String {
    func place(_ context: DecodingError.Context) -> String {
      let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
      return path.isEmpty ? "the file" : path.joined(separator: ".")
    }
    switch error {
    case .keyNotFound(let key, let context): return "\(place(context)) has no \(key.stringValue)."
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return "\(place(context)) is of the wrong type."
    case .dataCorrupted(let context): return "\(place(context)) is not JSON that fits."
    @unknown default: return "\(error)"
    }
  }

  // MARK: The file

  private struct File: Decodable {
    var indexes: [DeclaredIndex]?
    var fieldOverrides: [DeclaredOverride]?
  }

  private struct DeclaredOverride: Decodable {
    var collectionGroup: String
    var fieldPath: String
    var indexes: [DeclaredField]
  }

  private struct DeclaredIndex: Decodable {
    var collectionGroup: String
    var queryScope: String?
    var fields: [DeclaredField]

    func composite() throws(StatusError) -> CompositeIndex {
      var fields: [CompositeIndex.Field] = []
      var nameDescending: Bool?
      for field in self.fields {
        let text = field.fieldPath ?? ""
        guard let path = FieldPath(text) else {
          throw .invalidArgument(
            "\"\(text)\" is not a field path, in an index of \(collectionGroup)."
          )
        }
        let kind = try field.kind(collectionGroup)
        if path.isDocumentID {
          nameDescending = kind == .descending
        } else {
          fields.append(.init(path, kind))
        }
      }
      return CompositeIndex(
        collectionID: collectionGroup,
        scope: try scope(queryScope),
        fields: fields,
        nameDescending: nameDescending
      )
    }
  }

  /// A field of an index, or the only field of an override's index.
  private struct DeclaredField: Decodable {
    var fieldPath: String?
    var order: String?
    var arrayConfig: String?
    var vectorConfig: DeclaredVector?
    var queryScope: String?

    func kind(_ place: String) throws(StatusError) -> CompositeIndex.Field.Kind {
      switch (order, arrayConfig, vectorConfig) {
      case ("ASCENDING", nil, nil): return .ascending
      case ("DESCENDING", nil, nil): return .descending
      case (nil, "CONTAINS", nil): return .contains
      case (nil, nil, let vector?): return .vector(dimension: vector.dimension)
      default:
        throw .invalidArgument(
          "A field of \(place) has to have order ASCENDING or DESCENDING, arrayConfig CONTAINS, or a "
            + "vectorConfig."
        )
      }
    }
  }

  private struct DeclaredVector: Decodable {
    var dimension: Int
  }
}

private func scope(_ text: String?) throws(StatusError) -> IndexDefinition.Scope {
  switch text {
  case "COLLECTION", nil: return .collection
  case "COLLECTION_GROUP": return .group
  case let other?:
    throw .invalidArgument("queryScope is \"\(other)\"; COLLECTION and COLLECTION_GROUP are known.")
  }
}

extension DeclaredIndexes {
  /// Returns the contents of a file that declares indexes, in the given order.
  package static func file(of indexes: [CompositeIndex]) -> String {
    var overrides: [(field: String, indexes: [String])] = []
    for index in indexes where index.isOverride {
      let field = index.overriddenField
      if let known = overrides.firstIndex(where: { $0.field == field }) {
        let more = index.overridingIndexes.filter { !overrides[known].indexes.contains($0) }
        overrides[known].indexes += more
      } else {
        overrides.append((field, index.overridingIndexes))
      }
    }
    return "{\n  \"indexes\": \(list(indexes.filter { !$0.isOverride }.map(\.json))),\n"
      + "  \"fieldOverrides\": "
      + list(
        overrides.map { "{\($0.field), \"indexes\": [\($0.indexes.joined(separator: ", "))]}" }
      )
      + "\n}\n"
  }

  private static func list(_ lines: [String]) -> String {
    lines.isEmpty ? "[]" : "[\n    \(lines.joined(separator: ",\n    "))\n  ]"
  }
}

extension CompositeIndex {
  /// True if the index is declared as an override of its only field.
  package var isOverride: Bool { isOfOneField }

  /// The declaration of the index or override in `firestore.indexes.json`, on one line.
  package var json: String {
    guard !isOverride else {
      let indexes = overridingIndexes.joined(separator: ", ")
      return "{\(overriddenField), \"indexes\": [\(indexes)]}"
    }
    let fields = self.fields.map { field in
      #"{"fieldPath": \#(jsonQuoted(field.path.description)), \#(Self.kind(field.kind))}"#
    }
    let impliedDescending = self.fields.last?.kind == .descending
    let name =
      nameDescending == impliedDescending
      ? []
      : [#"{"fieldPath": "__name__", "order": "\#(nameDescending ? "DESCENDING" : "ASCENDING")"}"#]
    let scope = scope == .group ? "COLLECTION_GROUP" : "COLLECTION"
    return #"{"collectionGroup": \#(jsonQuoted(collectionID)), "queryScope": "\#(scope)", "#
      + #""fields": [\#((fields + name).joined(separator: ", "))]}"#
  }

  fileprivate var overriddenField: String {
    #""collectionGroup": \#(jsonQuoted(collectionID)), "#
      + #""fieldPath": \#(jsonQuoted(fields[0].path.description))"#
  }

  /// The indexes of the override that includes this index.
  fileprivate var overridingIndexes: [String] {
    Self.usualIndexes
      + (scope == .group
        ? [#"{"queryScope": "COLLECTION_GROUP", \#(Self.kind(fields[0].kind))}"#] : [])
  }

  /// The automatic indexes of a field, which an override has to repeat.
  fileprivate static let usualIndexes = [
    CompositeIndex.Field.Kind.ascending, .descending, .contains,
  ].map { #"{"queryScope": "COLLECTION", \#(kind($0))}"# }

  private static func kind(_ kind: Field.Kind) -> String {
    switch kind {
    case .ascending: #""order": "ASCENDING""#
    case .descending: #""order": "DESCENDING""#
    case .contains: #""arrayConfig": "CONTAINS""#
    case .vector(let dimension): #""vectorConfig": {"dimension": \#(dimension), "flat": {}}"#
    }
  }
}
