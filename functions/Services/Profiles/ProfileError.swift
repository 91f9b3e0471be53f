public import Foundation

/// The error of a client's profile, with the text that the app shows.
public enum ProfileError: Error, Sendable, Hashable {
  /// Nothing is known about this client yet.
  case profileNotFound
  case itemNotFound
  /// The text is blank, or longer than 500 characters.
  case invalidText
  case unauthorized
  /// No response came; the call can be repeated.
  case networkError
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The backend refused the request, for the given reason.
  case refused(String)
}

extension ProfileError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .profileNotFound: "Profile not found"
    case .itemNotFound: "This entry does not exist any more"
    case .invalidText: "Please enter a text of at most 500 characters"
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

extension ProfileError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .unauthorized
      case .notFound: .profileNotFound
      case .alreadyExists, .conflict: .refused("the profile has changed in the meantime")
      case .offline: .networkError
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
