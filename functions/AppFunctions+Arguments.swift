import FunctionsRuntime
import PsstModels

extension AppFunctions {
  /// Returns true if an order is for a dry run.
  ///
  /// Throws `invalid-argument` if the order is for a real run and `confirm` is not the given word.
  static func isDry(_ dryRun: Bool?, confirmedBy confirm: String?, _ word: String) throws -> Bool {
    guard dryRun == false else { return true }
    guard confirm == word else {
      throw CallableError(
        .invalidArgument,
        #"A real run must be confirmed: send {"dryRun": false, "confirm": "\#(word)"}."#
      )
    }
    return false
  }
}

extension String {
  /// Returns the string if it can be a document's id.
  ///
  /// Otherwise throws `invalid-argument`, with `name` as the parameter's name.
  func checkedID(of document: String, _ name: String) throws -> String {
    guard isDocumentID else {
      throw CallableError(.invalidArgument, "\(name) must be the id of a \(document).")
    }
    return self
  }
}
