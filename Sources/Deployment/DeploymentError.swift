package import RuntimeSupport

/// Why a deployment did not happen; what served before still serves.
package struct DeploymentError: StatusConvertible, CustomStringConvertible {
  /// What to show: the sentence and, below it, the compiler's or the binary's own words.
  package var message: String
  /// Whether it did not begin because another deployment is under way.
  package var isBusy = false

  /// An error with all that a person needs to mend it.
  package init(_ message: String) {
    self.message = message
  }

  package var statusCode: StatusCode { .failedPrecondition }
  package var statusMessage: String { message }
  package var description: String { message }
}
