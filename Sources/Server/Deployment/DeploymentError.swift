package import RuntimeSupport

/// Why a deployment did not happen; the previous one still serves.
package struct DeploymentError: StatusConvertible, CustomStringConvertible {
  /// The text to show: a sentence and, below it, the compiler's or the binary's own words.
  package var message: String
  /// Whether the deployment did not begin because another one is in progress.
  package var isBusy = false

  /// An error with everything that a person needs to fix it.
  package init(_ message: String) {
    self.message = message
  }

  package var statusCode: StatusCode { .failedPrecondition }
  package var statusMessage: String { message }
  package var description: String { message }
}
