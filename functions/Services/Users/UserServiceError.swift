public import Foundation

/// The error of a user's document, with the text that the app shows.
public enum UserServiceError: Error, Sendable, Hashable {
  /// The user has a document already.
  case documentAlreadyExists
  case userNotFound
  case permissionDenied
  /// No response came; the call can be repeated.
  case networkError
  case invalidEmail
  /// The name is blank, or longer than 100 characters.
  case invalidName
  /// A preference for the assistant is too long, or has a value that it cannot have.
  case invalidPreferences
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The backend refused the request, for the given reason.
  case refused(String)
}

extension UserServiceError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .documentAlreadyExists: "This user already exists"
    case .userNotFound: "User not found"
    case .permissionDenied: "You are not authorized to perform this action"
    case .networkError: "No internet connection"
    case .invalidEmail: "Invalid email format"
    case .invalidName: "Please enter a valid name"
    case .invalidPreferences: "Please check your preferences"
    case .notAuthenticated: "Please sign in"
    case .refused: "Something went wrong. Please try again"
    }
  }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    if case .refused(let text) = self { text } else { nil }
  }
}

extension UserServiceError {
  /// The failure behind the error, for the services that ask `UserService`.
  var failure: AccessFailure {
    switch self {
    case .documentAlreadyExists: .alreadyExists
    case .userNotFound: .notFound
    case .permissionDenied: .permissionDenied
    case .networkError: .offline
    case .notAuthenticated: .notAuthenticated
    case .invalidEmail, .invalidName, .invalidPreferences: .refused("\(self)")
    case .refused(let reason): .refused(reason)
    }
  }
}

extension UserServiceError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .userNotFound
      case .alreadyExists: .documentAlreadyExists
      case .conflict: .refused("the document has changed in the meantime")
      case .offline: .networkError
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
