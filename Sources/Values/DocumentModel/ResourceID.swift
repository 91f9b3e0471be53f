/// The rules for the ids of collections and documents, and for reserved names.
///
/// They follow "Constraints on collection IDs / document IDs / field names" in Firestore's
/// documentation. Each module has its own error message for a refused id: production's message in
/// that place.
package enum ResourceID {
  /// The maximum length of an id in UTF-8 bytes.
  package static let bytesMax = 1500

  /// The reason why an id is invalid.
  package enum Flaw: Sendable, Hashable {
    case isEmpty
    /// The id is `.` or `..`.
    case isDots
    case containsSlash
    case isTooLong
    case isReserved
  }

  /// Returns the first flaw of an id; nil if the id is valid for a collection or a document.
  ///
  /// An id of exactly four underscores is valid. An id of the form `__id7__` is valid for a
  /// document, but not `__id0__`, for which Firestore's exports have no form.
  package static func flaw(of id: String, isCollection: Bool) -> Flaw? {
    if id.isEmpty { return .isEmpty }
    if id == "." || id == ".." { return .isDots }
    if id.utf8.contains(UInt8(ascii: "/")) { return .containsSlash }
    if id.utf8.count > bytesMax { return .isTooLong }
    guard isReserved(id), id != "____" else { return nil }
    return !isCollection && ValueOrder.numericID(id) ?? 0 != 0 ? nil : .isReserved
  }

  /// Returns true if a name has the form `__.*__`, which Firestore also reserves for fields.
  package static func isReserved(_ name: String) -> Bool {
    let bytes = name.utf8
    return bytes.count >= 4 && bytes.starts(with: underscores)
      && bytes.suffix(2).elementsEqual(underscores)
  }

  private static let underscores = Array("__".utf8)
}
