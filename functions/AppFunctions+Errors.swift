import FirestoreClient
import FunctionsRuntime
import PsstBackend
import PsstModels
import PsstServices

// Here, and nowhere else, errors of the backend become those of callables and of events.

/// An error of the backend with the error that a user's callable ends with.
protocol CallableConvertible: Error {
  /// The error sent to the user, without reasons that are only logged.
  var callableError: CallableError { get }
}

extension AppFunctions {
  /// Runs the work of a user's callable, and reports failures without their reasons.
  func answering<Output>(
    _ logger: Logger,
    _ work: () async throws -> Output
  ) async throws -> Output {
    do {
      return try await work()
    } catch let error as any CallableConvertible {
      let sent = error.callableError
      logger.log(
        level: sent.code == .unavailable || sent.code == .resourceExhausted ? .warning : .info,
        "Call refused",
        metadata: ["reason": "\(error)"]
      )
      throw sent
    }
  }

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

  /// Runs a trigger's work and marks its failures as temporary or permanent.
  ///
  /// Of the many failures during one outage of a provider, only the first is logged for people.
  func sortingFailures<Output>(
    _ logger: Logger,
    _ work: () async throws -> Output
  ) async throws -> Output {
    do {
      return try await work()
    } catch let error as ServiceError {
      if error.isNews {
        logger.log(
          level: error.needsCorrection ? .error : .warning,
          "Events wait for a provider",
          metadata: ["reason": "\(error)"]
        )
      }
      throw error.eventError
    } catch let error as FirestoreError where error.code == .invalidArgument {
      // For example, the document would be too large.
      throw EventError.permanent("The database does not take what the chat asks for", cause: error)
    }
  }
}

extension ServiceError {
  /// The error that an event's handler throws for this failure.
  ///
  /// An event is retried for as long as its provider has an outage. The delay is at least an hour
  /// if only a person can correct the cause. At a daily limit the event waits until the next day.
  var eventError: EventError {
    guard isOutage else { return .permanent(message) }
    let least: Duration = needsCorrection && circuit != .halfOpen ? .seconds(3600) : .zero
    return .retry(after: max(least, retryAfter ?? .zero), message)
  }
}

// MARK: Users' callables

extension Assistant.AnswerError: CallableConvertible {
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

extension QuickActionError: CallableConvertible {
  /// The error sent to the user.
  ///
  /// It does not reveal whether a chat or message of other users exists.
  var callableError: CallableError {
    switch self {
    case .unknown: CallableError(.notFound, "There is no such chat or message of yours.")
    case .notTrainer: CallableError(.permissionDenied, "Only trainers have reminders.")
    }
  }
}

extension ConfirmationError: CallableConvertible {
  var callableError: CallableError {
    switch self {
    case .unknown: CallableError(.notFound, "There is no such proposal of yours.")
    case .expired:
      CallableError(.failedPrecondition, "The proposal has expired; ask for it again.")
    case .targetChanged(let name):
      CallableError(
        .failedPrecondition,
        "The proposal is for \(name) now; confirm it again if that is right."
      )
    case .settled(let status):
      CallableError(.failedPrecondition, "The proposal is \(status.rawValue) already.")
    }
  }
}

extension ChatCreationError: CallableConvertible {
  var callableError: CallableError {
    switch self {
    case .invalid(let reason): CallableError(.invalidArgument, reason)
    case .notMember:
      CallableError(.permissionDenied, "You must be one of the members of a chat that you create.")
    case .userNotFound(let uid): CallableError(.notFound, "There is no user with the uid \(uid).")
    case .relationshipNotFound:
      CallableError(.failedPrecondition, ChatError.relationshipNotFound.text)
    case .groupNotShared: CallableError(.failedPrecondition, ChatError.groupNotShared.text)
    }
  }
}

extension CallLimitError: CallableConvertible {
  var callableError: CallableError {
    CallableError(.resourceExhausted, "Too many requests", retryAfter: retryAfter)
  }
}

extension CallableError {
  /// Creates a temporary failure with `retryAfterSeconds` in its details.
  init(_ code: StatusCode, _ message: String, retryAfter: Duration) {
    let seconds = max(1, Int((retryAfter / .seconds(1)).rounded(.up)))
    self.init(
      code,
      "\(message); try again in \(seconds) \(seconds == 1 ? "second" : "seconds").",
      details: ["retryAfterSeconds": seconds]
    )
  }
}

// MARK: Administrators' callables

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
