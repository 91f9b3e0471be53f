public import Foundation

/// The error of a trainer's calendar, with the text that the app shows.
public enum CalendarError: Error, Sendable, Hashable {
  case eventNotFound
  /// The end is not after the start.
  case invalidTimes
  /// The title is blank, or longer than 500 characters.
  case invalidTitle
  case unauthorized
  /// No response came; the call can be repeated.
  case networkError
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The backend refused the request, for the given reason.
  case refused(String)
}

extension CalendarError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .eventNotFound: "This event does not exist any more"
    case .invalidTimes: "The end must be after the start"
    case .invalidTitle: "Please enter a title"
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

extension CalendarError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .unauthorized
      case .notFound: .eventNotFound
      case .alreadyExists, .conflict: .refused("the event has changed in the meantime")
      case .offline: .networkError
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
