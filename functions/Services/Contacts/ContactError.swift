public import Foundation

/// The error of a trainer's contacts, with the text that the app shows.
public enum ContactError: Error, Sendable, Hashable {
  case invalidEmail
  /// Nobody has the address.
  case userNotFound
  case alreadyExists
  /// The name is blank, or longer than 100 characters.
  case invalidName
  case clientNotFound
  /// There is no such prospect, or it has become another client already.
  case prospectNotFound
  case unauthorized
  /// No response came; the call can be repeated.
  case networkError
  /// The address is that of another trainer.
  case notAClient
  /// The address is the trainer's own.
  case ownAddress
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The backend refused the request, for the given reason.
  case refused(String)
}

extension ContactError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? {
    switch self {
    case .invalidEmail: "Please enter a valid email address"
    case .userNotFound: "User not found. Client must have a Psst account"
    case .alreadyExists: "This user is already in your client list"
    case .invalidName: "Please enter a valid name"
    case .clientNotFound: "Client not found"
    case .prospectNotFound: "Prospect not found"
    case .unauthorized: "You are not authorized to perform this action"
    case .networkError: "No internet connection"
    case .notAClient: "This user is a trainer. Only clients can be added"
    case .ownAddress: "This is your own email address"
    case .notAuthenticated: "Please sign in"
    case .refused: "Something went wrong. Please try again"
    }
  }

  /// The server's text, which is for logs; nil for errors that need none.
  public var serverMessage: String? {
    if case .refused(let text) = self { text } else { nil }
  }
}

extension ContactError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .unauthorized
      case .notFound: .clientNotFound
      case .alreadyExists: .alreadyExists
      case .conflict: .refused("the contact has changed in the meantime")
      case .offline: .networkError
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
