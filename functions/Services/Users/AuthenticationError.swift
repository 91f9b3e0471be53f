public import Foundation

/// The error of a sign-up, a sign-in or a password reset, with the text that the app shows.
public enum AuthenticationError: Error, Sendable, Hashable {
  /// The name is empty, or has only white space if `isBlank`.
  case emptyDisplayName(isBlank: Bool)
  /// The name has more than 100 characters.
  case displayNameTooLong
  case invalidRole
  case emailAlreadyInUse
  case invalidEmail
  case weakPassword
  /// The address or the password is wrong; the error does not say which.
  case wrongCredentials
  /// An administrator has disabled the account.
  case userDisabled
  /// The backend refuses this sign-up or sign-in, for the given reason.
  case refused(String)
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// No response came; the sign-up may have happened, and can be repeated.
  case networkError
}

extension AuthenticationError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .emptyDisplayName(isBlank: false): "Display name is required"
    case .emptyDisplayName(isBlank: true): "Display name cannot be empty"
    case .displayNameTooLong: "Display name must have at most 100 characters"
    case .invalidRole: "Please select your role"
    case .emailAlreadyInUse: "This email is already in use"
    case .invalidEmail: "Invalid email format"
    case .weakPassword: "Password must be at least 6 characters"
    case .wrongCredentials: "Wrong email or password"
    case .userDisabled: "This account has been disabled"
    case .refused: "Something went wrong. Please try again"
    case .notAuthenticated: "Please sign in"
    case .networkError: "No internet connection"
    }
  }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    if case .refused(let text) = self { text } else { nil }
  }
}
