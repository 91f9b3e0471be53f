extension StatusError {
  /// Returns the error that a client receives.
  ///
  /// An error with a status is sent as it is, and a cancellation as `CANCELLED`. Any other error is
  /// a bug: `log` receives it, and the client receives `INTERNAL` without its text.
  package static func publicError(
    for error: any Error,
    log: (any Error) -> Void = { _ in }
  ) -> any StatusConvertible {
    switch error {
    case let error as any StatusConvertible: return error
    case is CancellationError: return StatusError(.cancelled, "The request was cancelled.")
    default:
      log(error)
      return StatusError(.internal, "Internal error.")
    }
  }

  /// Returns the message of an error for the person who runs the suite.
  package static func message(of error: any Error) -> String {
    (error as? any StatusConvertible)?.statusMessage ?? "\(error)"
  }
}
