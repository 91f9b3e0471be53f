/// A source of a signed-in user's ID tokens, such as the sign-in service of an app.
///
/// A token is valid for an hour, but a listener and an app run for longer. `Firestore` therefore
/// asks for a token before each call and each connection of a listener.
public protocol IDTokenSource: Sendable {
  /// Returns a token of the user that is valid for some minutes at least.
  ///
  /// `rejected` is a token that the server has refused, although it may look valid here. Return a
  /// different one then; if there is none, the refusal reaches the caller.
  ///
  /// Throw `FirestoreError` `unavailable` if the token cannot be renewed now: a listener then tries
  /// again later. An error of another type ends the listener, and reaches the caller unchanged.
  func idToken(replacing rejected: String?) async throws -> String
}

/// The identity with which a client makes its calls.
package enum CallIdentity: Sendable {
  case fixed(FirestoreCredential)
  case user(any IDTokenSource)

  /// Throws the error of the source of tokens, for example because the user has signed out.
  ///
  /// A token that cannot be renewed now is no reason to end what is going on.
  func checkSignedIn() async throws {
    guard case .user(let source) = self else { return }
    do {
      _ = try await source.idToken(replacing: nil)
    } catch let error as FirestoreError where error.code == .unavailable {
      return
    }
  }

  /// Makes a call with the current credential.
  ///
  /// A call whose token the server refuses is made once more with another token. The server has
  /// not acted in this case.
  package func authorize<Output>(
    _ call: (FirestoreCredential) async throws -> Output
  ) async throws -> Output {
    switch self {
    case .fixed(let credential): return try await call(credential)
    case .user(let source):
      let token = try await source.idToken(replacing: nil)
      do {
        return try await call(.idToken(token))
      } catch let error as FirestoreError where error.code == .unauthenticated {
        let other = try await source.idToken(replacing: token)
        guard other != token else { throw error }
        return try await call(.idToken(other))
      }
    }
  }
}
