import FirestoreClient
import FunctionsRuntime
import PsstServices

extension ServiceError {
  /// The failure as an administrator sees it, with its reason, which users never see.
  var administrationError: CallableError {
    switch kind {
    case .unavailable: CallableError(.unavailable, message)
    case .rateLimited, .quotaExhausted, .limitReached: CallableError(.resourceExhausted, message)
    case .misconfigured: CallableError(.failedPrecondition, message)
    case .refused, .notFound, .alreadyExists: CallableError(.internal, message)
    }
  }
}

extension FirestoreError {
  /// The failure of long work that resumes where it stopped.
  var interruptionError: CallableError {
    CallableError(
      code == .ok ? .internal : code,
      "The database failed: \(message). What was done is kept; call again to go on."
    )
  }
}
