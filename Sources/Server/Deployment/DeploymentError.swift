package import StatusCodes

/// The reason why a deployment failed; the previous deployment still serves.
package struct DeploymentError: StatusConvertible, CustomStringConvertible {
  /// The message to show: a sentence, followed by output of the compiler or the binary.
  package var message: String
  /// True if the deployment did not begin because another one is in progress.
  package var isBusy = false

  /// Creates an error; `message` should contain everything that a person needs to fix it.
  package init(_ message: String) {
    self.message = message
  }

  package var statusCode: StatusCode { .failedPrecondition }
  package var statusMessage: String { message }
  package var description: String { message }
}
