public import Foundation

/// The error of presence and typing, with the text that the app shows.
public enum PresenceError: Error, Sendable, Hashable {
  case permissionDenied
  /// No response came; the call can be repeated.
  case networkError
  /// Nobody is signed in, or the session has ended.
  case notAuthenticated
  /// The server refused the request, for the given reason.
  case refused(String)

  /// The text that the app shows.
  public var text: String {
    switch self {
    case .permissionDenied: "You are not authorized to perform this action"
    case .networkError: "No internet connection"
    case .notAuthenticated: "Please sign in"
    case .refused: "Something went wrong. Please try again"
    }
  }
}

extension PresenceError: LocalizedError {
  /// The text that the app shows.
  public var errorDescription: String? { text }
}

extension PresenceError: AccessError {
  init(_ failure: AccessFailure) {
    self =
      switch failure {
      case .notAuthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .offline: .networkError
      case .notFound: .refused("there is no such place")
      case .alreadyExists, .conflict: .refused("the value has changed in the meantime")
      case .busy(let reason), .failed(let reason), .refused(let reason): .refused(reason)
      }
  }
}
