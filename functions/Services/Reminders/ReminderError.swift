public import Foundation

/// The error of a trainer's reminders, with the text that the app shows.
public enum ReminderError: Error, Sendable, Hashable {
  case reminderNotFound
  /// The text is blank, or longer than 5,000 characters.
  case invalidText
  /// The user is no trainer.
  case unauthorized
  /// No response came; the call can be repeated.
  case networkError
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The backend refused the request, for the given reason.
  case refused(String)
}

extension ReminderError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .reminderNotFound: "This reminder does not exist any more"
    case .invalidText: "Please enter a text of at most 5,000 characters"
    case .unauthorized: "You are not authorized to perform this action"
    case .networkError: "No internet connection"
    case .notAuthenticated: "Please sign in"
    case .refused: "Something went wrong. Please try again"
    }
  }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    if case .refused(let text) = self { text } else { nil }
  }
}

extension ReminderError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .unauthorized
      case .notFound: .reminderNotFound
      case .alreadyExists, .conflict: .refused("the reminder has changed in the meantime")
      case .offline: .networkError
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
