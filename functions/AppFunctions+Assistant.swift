import FunctionsRuntime
import PsstModels
import PsstBackend

extension AppFunctions {
  /// Runs a quick action, and reports failures to the user without their reasons.
  func assisting<Output>(_ logger: Logger, _ work: () async throws -> Output) async throws -> Output
  {
    do {
      return try await work()
    } catch let failure as Assistant.AnswerError {
      logger.warning("Quick action not answered", metadata: ["reason": "\(failure)"])
      throw failure.callableError
    } catch let error as QuickActionError {
      throw error.callableError
    }
  }
}

extension Assistant.AnswerError {
  /// The error sent to the user; the reason is only logged.
  var callableError: CallableError {
    switch self {
    case .unknownConversation:
      CallableError(.notFound, "There is no such conversation of yours.")
    case .otherQuestion:
      CallableError(
        .invalidArgument,
        "requestId belongs to another question; use a new id for each question."
      )
    case .inProgress(let time):
      CallableError(.aborted, "This question is being answered already", retryAfter: time)
    case .notConfigured:
      CallableError(
        .unavailable,
        "The assistant is unavailable, because no chat model is configured; see PSST_CHAT_MODEL."
      )
    case .unavailable(let error):
      switch error.kind {
      case .limitReached, .quotaExhausted, .rateLimited:
        CallableError(
          .resourceExhausted,
          "The assistant has no room for this question",
          retryAfter: error.retryAfter ?? .seconds(60)
        )
      default:
        CallableError(
          .unavailable,
          "The assistant is unavailable at the moment",
          retryAfter: error.retryAfter ?? .seconds(30)
        )
      }
    }
  }
}

extension QuickActionError {
  /// The error sent to the user.
  ///
  /// It does not reveal whether a chat or message of other users exists.
  fileprivate var callableError: CallableError {
    switch self {
    case .unknown: CallableError(.notFound, "There is no such chat or message of yours.")
    case .notTrainer: CallableError(.permissionDenied, "Only trainers have reminders.")
    }
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
