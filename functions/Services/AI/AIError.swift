import FirestoreClient
public import Foundation

/// The error of the assistant, with the text that the app shows.
public enum AIError: Error, Sendable, Hashable {
  /// Too many questions, or the budget of tokens is spent; nil if no time was named.
  case rateLimitExceeded(retryAfter: Duration?)
  /// The model or its provider failed, or refused the question, with the given text.
  case openAIError(String)
  /// The assistant cannot be reached, or has no model; nil if no time was named.
  case unavailable(retryAfter: Duration?)
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The conversation, the message or the proposal is not there, or is not the user's.
  case notFound(String)
  case permissionDenied
}

extension AIError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .rateLimitExceeded(nil): "Too many questions. Please try again later"
    case .rateLimitExceeded(let time?):
      "Too many questions. Please try again in \(time.secondsRoundedUp) s"
    case .openAIError: "The assistant could not answer. Please try again"
    case .unavailable(nil): "The assistant is unavailable at the moment"
    case .unavailable(let time?):
      "The assistant is unavailable at the moment. Please try again in \(time.secondsRoundedUp) s"
    case .notAuthenticated: "Please sign in"
    case .notFound: "This does not exist any more"
    case .permissionDenied: "You are not authorized to perform this action"
    }
  }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    switch self {
    case .openAIError(let text), .notFound(let text): text
    default: nil
    }
  }
}

extension AIError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .notFound("Not found")
      case .busy: .rateLimitExceeded(retryAfter: nil)
      case .offline, .conflict, .alreadyExists: .unavailable(retryAfter: nil)
      case .failed(let reason), .refused(let reason): .openAIError(reason)
      }
  }

  /// Creates the error for the failure of a call.
  init(_ failure: CallFailure) {
    self =
      switch failure.code {
      case .resourceExhausted: .rateLimitExceeded(retryAfter: failure.retryAfter)
      case .unavailable, .deadlineExceeded, .aborted: .unavailable(retryAfter: failure.retryAfter)
      case .unauthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .notFound(failure.message)
      default: .openAIError(failure.message)
      }
  }
}
