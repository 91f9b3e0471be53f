import FunctionsRuntime
import JSONText
import OutboundHTTP

/// A user who has signed in to a suite.
public struct SignedInUser: Sendable, Hashable {
  /// The user's id.
  public var uid: String
  /// The ID token, as the app would send it.
  public var idToken: String
  /// The token that gets new ID tokens.
  public var refreshToken: String

  /// The identity with which a test acts as the user.
  public var token: TestToken { .raw(idToken) }
}

extension FunctionsSuite {
  // MARK: - Users

  /// Signs up a user as an app does; without an address, the user is anonymous.
  ///
  /// The functions that decide on sign-ups and sign-ins are asked. `OnUserCreated` runs with the
  /// next `settle`. Throws `FunctionsTestingError` with the kind `authRefused` and the message of
  /// Auth, such as `EMAIL_EXISTS`.
  @discardableResult
  public func signUp(
    email: String? = nil,
    password: String = "secret1",
    displayName: String? = nil
  ) async throws -> SignedInUser {
    var body = JSONObjectText()
    if let email {
      body.set("email", email)
      body.set("password", password)
      body.set("displayName", displayName)
    }
    return try await signedIn("accounts:signUp", body)
  }

  /// Signs in a user with a password as an app does; throws as `signUp` does.
  @discardableResult
  public func signIn(email: String, password: String = "secret1") async throws -> SignedInUser {
    var body = JSONObjectText()
    body.set("email", email)
    body.set("password", password)
    return try await signedIn("accounts:signInWithPassword", body)
  }

  /// The users of the suite, as an administrator sees and changes them.
  public var users: AuthAdmin {
    AuthAdmin(environment: core.environment.variables, http: core.auth)
  }

  private func signedIn(_ method: String, _ body: JSONObjectText) async throws -> SignedInUser {
    var request = OutboundRequest(
      method: "POST",
      url: "http://\(AuthTransport.host)/identitytoolkit.googleapis.com/v1/\(method)?key=test",
      headers: ["content-type": "application/json"]
    )
    request.body = body.bytes
    let response = try await core.auth.send(request)
    guard response.isSuccess else {
      struct Failure: Decodable {
        struct Detail: Decodable { var message: String }
        var error: Detail
      }
      // A body that is not JSON is shown as it is.
      let failure = try? Failure(decodingJSON: response.body)
      throw FunctionsTestingError(.authRefused, failure?.error.message ?? response.text)
    }
    struct Reply: Decodable {
      var localId: String
      var idToken: String
      var refreshToken: String
    }
    let reply = try Reply(decodingJSON: response.body)
    return SignedInUser(
      uid: reply.localId,
      idToken: reply.idToken,
      refreshToken: reply.refreshToken
    )
  }
}
