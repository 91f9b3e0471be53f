import JSONText

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

extension FirestoreIndexes {
  /// Reads the contents of a file of indexes.
  ///
  /// Throws ``PlanError`` with the file's name if the contents are no such file, or have a value
  /// that Firestore does not know.
  package init(json: Data, file: String) throws(PlanError) {
    do {
      self = try Self(decodingJSON: json)
    } catch {
      throw PlanError("\(file) is not a file of indexes; correct it.")
    }
    let problems = problems
    guard problems.isEmpty else {
      throw PlanError(
        problems.prefix(Self.problemsMax).map { "\(file): \($0)" }.joined(separator: "\n")
      )
    }
  }

  /// The scopes that Firestore knows.
  static let scopes = ["COLLECTION", "COLLECTION_GROUP", "COLLECTION_RECURSIVE"]
  static let orders = ["ASCENDING", "DESCENDING"]
  /// The most problems that an error names.
  private static let problemsMax = 10
  /// The largest dimension of a vector index of Firestore.
  private static let dimensionMax = 2048

  /// The values that Firestore does not know, each as a sentence that says what to write.
  private var problems: [String] {
    let ofIndexes = indexes.flatMap { index -> [String] in
      let owner = "an index of \(index.collectionGroup.debugDescription)"
      return Self.problem(ofScope: index.queryScope, owner)
        + Self.problem(ofGroup: index.collectionGroup, owner)
        + (index.fields.isEmpty ? ["\(owner) has no fields; add them."] : [])
        + index.fields.flatMap { field in
          Self.problem(ofPath: field.fieldPath, owner)
            + Self.problems(
              field.order,
              field.arrayConfig,
              field.vectorConfig,
              "\(owner), field \(field.fieldPath.debugDescription),"
            )
        }
    }
    let ofFields = fieldOverrides.flatMap { field -> [String] in
      let owner =
        "the field \(field.fieldPath.debugDescription) of \(field.collectionGroup.debugDescription)"
      return Self.problem(ofGroup: field.collectionGroup, owner)
        + Self.problem(ofPath: field.fieldPath, owner)
        + (field.indexes ?? []).flatMap { index in
          Self.problem(ofScope: index.queryScope, owner)
            + Self.problems(index.order, index.arrayConfig, nil, owner)
        }
    }
    return ofIndexes + ofFields
  }

  private static func problem(ofScope scope: String?, _ owner: String) -> [String] {
    guard let scope, !scopes.contains(scope) else { return [] }
    return [
      "\(owner) has the queryScope \(scope.debugDescription); give "
        + "\(scopes.dropLast().joined(separator: ", ")) or \(scopes[scopes.count - 1])."
    ]
  }

  private static func problem(ofGroup group: String, _ owner: String) -> [String] {
    guard group.isEmpty || group.utf8.contains(UInt8(ascii: "/")) else { return [] }
    return [
      "\(owner) needs the last part of a collection's path as its collectionGroup; correct it."
    ]
  }

  /// Returns the problem of a path that gcloud would read as a flag, or of one that is empty.
  private static func problem(ofPath path: String, _ owner: String) -> [String] {
    guard path.isEmpty || path.utf8.first == UInt8(ascii: "-") else { return [] }
    return [
      "\(owner) has the fieldPath \(path.debugDescription); give a field's name, in backticks if it "
        + "does not begin with a letter."
    ]
  }

  private static func problems(
    _ order: String?,
    _ array: String?,
    _ vector: VectorConfig?,
    _ owner: String
  ) -> [String] {
    let kinds = [order != nil, array != nil, vector != nil].count { $0 }
    guard kinds == 1 else {
      return ["\(owner) has \(kinds) of order, arrayConfig and vectorConfig; give exactly one."]
    }
    if let order, !orders.contains(order) {
      return ["\(owner) has the order \(order.debugDescription); give ASCENDING or DESCENDING."]
    }
    if let array, array != "CONTAINS" {
      return ["\(owner) has the arrayConfig \(array.debugDescription); give CONTAINS."]
    }
    if let vector, !(1...dimensionMax).contains(vector.dimension) {
      return ["\(owner) has the dimension \(vector.dimension); give 1 to \(dimensionMax)."]
    }
    return []
  }
}
