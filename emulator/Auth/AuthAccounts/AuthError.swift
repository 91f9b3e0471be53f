package import StatusCodes

/// An error in the words of Firebase's Auth API, such as `WEAK_PASSWORD : Password should be …`.
///
/// Clients switch on the part before the colon.
package struct AuthError: StatusConvertible, Equatable {
  package var statusCode: StatusCode
  /// The code, with an explanation after a colon if there is one.
  package var statusMessage: String
  /// The `reason` of the error body.
  package var reason: String

  /// Creates an error with status 400.
  package init(_ message: String) {
    self.init(.invalidArgument, message, reason: "invalid")
  }

  package init(_ code: StatusCode, _ message: String, reason: String) {
    statusCode = code
    statusMessage = message
    self.reason = reason
  }

  /// Creates the error for a part of the API that the emulator does not have.
  package static func notEmulated(_ feature: String) -> AuthError {
    AuthError("OPERATION_NOT_ALLOWED : \(feature) not emulated by Hearth.")
  }
}

/// Throws an `AuthError` with a message unless a condition holds.
package func require(
  _ condition: Bool,
  _ message: @autoclosure () -> String
) throws(AuthError) {
  guard condition else { throw AuthError(message()) }
}

/// Returns a value; throws an `AuthError` with a message if it is nil.
package func require<Value>(
  _ value: Value?,
  _ message: @autoclosure () -> String
) throws(AuthError) -> Value {
  guard let value else { throw AuthError(message()) }
  return value
}
