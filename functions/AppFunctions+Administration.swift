import FirestoreClient
import FunctionsRuntime
import PsstBackend

extension AppFunctions {
  /// Runs an administrator's operation, and reports failures with their reasons.
  ///
  /// Functions for users hide these reasons.
  func administering<Output>(_ work: () async throws -> Output) async throws -> Output {
    do {
      return try await work()
    } catch let error as ServiceError {
      throw error.administrationError
    } catch let error as LeaseError {
      throw CallableError(.aborted, error.message)
    } catch let error as FirestoreError {
      throw CallableError(
        error.code == .ok ? .internal : error.code,
        "The database failed: \(error.message). What was done is kept; call again to continue."
      )
    }
  }

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

extension ServiceError {
  fileprivate var administrationError: CallableError {
    switch kind {
    case .unavailable: CallableError(.unavailable, message)
    case .rateLimited, .quotaExhausted, .limitReached: CallableError(.resourceExhausted, message)
    case .misconfigured: CallableError(.failedPrecondition, message)
    case .refused, .notFound, .alreadyExists: CallableError(.internal, message)
    }
  }
}
