/// The rules for the ids of collections and documents, and for reserved names.
///
/// They are from "Constraints on collection IDs / document IDs / field names" in Firestore's
/// documentation. Rooms differ only in the words of a refusal, which are production's for each
/// place.
package enum ResourceID {
  /// The longest id, in bytes of UTF-8.
  package static let bytesMax = 1500

  /// What is wrong with an id.
  package enum Flaw: Sendable, Hashable {
    case isEmpty
    /// The id is `.` or `..`.
    case isDots
    case containsSlash
    case isTooLong
    case isReserved
  }

  /// The first flaw of an id; nil when it may name a collection or a document.
  ///
  /// An id of exactly four underscores has no flaw, and neither has `__id7__` for a document.
  package static func flaw(of id: String, isCollection: Bool) -> Flaw? {
    if id.isEmpty { return .isEmpty }
    if id == "." || id == ".." { return .isDots }
    if id.utf8.contains(UInt8(ascii: "/")) { return .containsSlash }
    if id.utf8.count > bytesMax { return .isTooLong }
    guard isReserved(id), id != "____" else { return nil }
    return !isCollection && ValueOrder.numericID(id) != nil ? nil : .isReserved
  }

  /// Whether a name has the form `__.*__`, which Firestore also reserves in fields.
  package static func isReserved(_ name: String) -> Bool {
    let bytes = name.utf8
    return bytes.count >= 4 && bytes.starts(with: underscores)
      && bytes.suffix(2).elementsEqual(underscores)
  }

  private static let underscores = Array("__".utf8)
}
