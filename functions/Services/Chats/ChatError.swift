public import Foundation

/// The error of a chat, with the text that the app shows.
public enum ChatError: Error, Sendable, Hashable {
  /// A trainer and a client are joined neither by a contact nor by a group.
  case relationshipNotFound
  /// Two clients are in no group that joins them.
  case groupNotShared
  case chatNotFound
  /// A member of a new chat is no user.
  case userNotFound
  /// The name of a group is blank, or longer than 100 characters.
  case invalidName
  /// The members of a new chat are not valid, for the given reason.
  case invalid(String)
  case permissionDenied
  /// No response came; the call can be repeated.
  case networkError
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// Too many calls; nil if no time was named.
  case tooManyRequests(retryAfter: Duration?)
  /// The backend refused the request, for the given reason.
  case refused(String)

  /// The text that the app shows.
  public var text: String {
    switch self {
    case .relationshipNotFound: "This trainer hasn't added you yet"
    case .groupNotShared: "You can message people you share a group with"
    case .chatNotFound: "Chat not found"
    case .userNotFound: "User not found"
    case .invalidName: "Please enter a valid name"
    case .invalid: "This chat cannot be created"
    case .permissionDenied: "You are not authorized to perform this action"
    case .networkError: "No internet connection"
    case .notAuthenticated: "Please sign in"
    case .tooManyRequests(nil): "Too many requests. Please try again later"
    case .tooManyRequests(let time?):
      "Too many requests. Please try again in \(time.secondsRoundedUp) s"
    case .refused: "Something went wrong. Please try again"
    }
  }
}

extension ChatError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? { text }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    switch self {
    case .invalid(let text), .refused(let text): text
    default: nil
    }
  }
}

extension ChatError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .chatNotFound
      case .alreadyExists, .conflict: .refused("the chat has changed in the meantime")
      case .offline: .networkError
      case .busy: .tooManyRequests(retryAfter: nil)
      case .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
