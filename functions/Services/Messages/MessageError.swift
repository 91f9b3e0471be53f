public import Foundation

/// The error of a message, with the text that the app shows.
public enum MessageError: String, Error, Sendable, Hashable {
  case notAuthenticated
  /// No response came; the call can be repeated.
  case offline
  case chatNotFound
  /// The user is no member of the chat, or is a client whom the trainer has removed.
  case permissionDenied
  /// The message does not exist any more.
  case messageNotFound
  /// The text has more than 10,000 characters.
  case tooLong
  /// The message has neither a visible text nor an image.
  case empty
  /// Too many messages wait for their delivery.
  case queueFull
  /// The backend refused the request.
  case refused
}

extension MessageError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .notAuthenticated: "Please sign in"
    case .offline: "No internet connection"
    case .chatNotFound: "Chat not found"
    case .messageNotFound: "This message does not exist any more"
    case .permissionDenied: "You are not authorized to perform this action"
    case .tooLong: "Messages must have at most 10,000 characters"
    case .empty: "Please enter a message"
    case .queueFull: "Too many messages are waiting to be sent"
    case .refused: "Something went wrong. Please try again"
    }
  }
}

extension MessageError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .chatNotFound
      case .offline, .busy: .offline
      case .alreadyExists, .conflict, .failed, .refused: .refused
      }
  }
}
