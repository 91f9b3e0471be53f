import DocumentModel
import StatusCodes

/// The check of a write's precondition against the state of its document.
///
/// It needs the stored documents, so it runs after access has been decided. Preconditions that no
/// stored document could meet are refused earlier; see `WriteValidation.checkSequence`.
enum PreconditionCheck {
  /// Throws production's error for a precondition that does not hold.
  ///
  /// `exists` is the state that the earlier writes of the commit left. `stored` is the version of
  /// the document before the commit, with which an `updateTime` is compared.
  static func check(
    _ precondition: Precondition,
    of name: DocumentName,
    exists: Bool,
    stored: Timestamp?
  ) throws(StatusError) {
    switch precondition {
    case .none: break
    case .exists(true):
      guard exists else { throw StatusError(.notFound, "No document to update: \(name)") }
    case .exists(false):
      guard !exists else {
        throw StatusError(.alreadyExists, "Document already exists: \(name)")
      }
    case .updateTime(let required):
      if let stored, required > stored {
        throw .invalidArgument(
          "Invalid base version, it is greater than the stored version: \(name)"
        )
      }
      guard stored == required else {
        throw StatusError(
          .failedPrecondition,
          "the stored version (\(stored?.microseconds ?? 0)) does not match the required base "
            + "version (\(required.microseconds))"
        )
      }
    }
  }
}
