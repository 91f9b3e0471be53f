import GoogleAccess
public import OutboundHTTP
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The users of Firebase Authentication, as a server reads and changes them.
///
/// ```swift
/// let users = AuthAdmin(environment: await FunctionsApp.environment())
/// try await users.setCustomClaims(["role": .string("trainer")], of: uid)
/// ```
public struct AuthAdmin: Sendable {
  private let origin: String
  private let project: String?
  /// The credentials for production; nil on the emulator, or if there are none.
  private let credentials: GoogleCredentials?
  private let isEmulated: Bool
  private let http: any HTTPTransport

  /// Creates a client from `FIREBASE_AUTH_EMULATOR_HOST` and the project's variables.
  ///
  /// Without an emulator the requests go to Google, with the credentials that the environment
  /// names. Functions that run in an emulator never reach Google. A missing variable throws with
  /// the first request.
  public init(environment: [String: String], http: (any HTTPTransport)? = nil) {
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let http = http ?? OutboundClient(configuration: .init(environment: environment))
    self.http = http
    project = value("GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT")
    if let host = value("FIREBASE_AUTH_EMULATOR_HOST") {
      origin = "http://\(host)/identitytoolkit.googleapis.com"
      isEmulated = true
      credentials = nil
    } else {
      origin = "https://identitytoolkit.googleapis.com"
      isEmulated = false
      credentials =
        environment["FUNCTIONS_EMULATOR"] == "true"
        ? nil
        : CredentialsSource(environment: environment).map {
          GoogleCredentials(source: $0, http: http)
        }
    }
  }

  /// Returns the user with an id; nil if there is none.
  public func user(_ uid: String) async throws -> UserRecord? {
    try await lookUp(["localId": .array([.string(uid)])])
  }

  /// Returns the user with an address; nil if there is none.
  public func user(email: String) async throws -> UserRecord? {
    try await lookUp(["email": .array([.string(email)])])
  }

  /// Creates a user and returns the uid.
  ///
  /// Throws `AuthAdminError` with the code `EMAIL_EXISTS` or `DUPLICATE_LOCAL_ID` if the address or
  /// the id is taken.
  @discardableResult
  public func createUser(
    uid: String? = nil,
    email: String? = nil,
    password: String? = nil,
    displayName: String? = nil
  ) async throws -> String {
    var fields = MapValue()
    fields["localId"] = uid.map { .string($0) }
    fields["email"] = email.map { .string($0) }
    fields["password"] = password.map { .string($0) }
    fields["displayName"] = displayName.map { .string($0) }
    guard case .string(let made)? = try await send("accounts", fields)["localId"] else {
      throw AuthAdminError(code: "INTERNAL_ERROR", message: "Auth returned no id of the user.")
    }
    return made
  }

  /// Replaces the custom claims of a user; nil removes them.
  ///
  /// Tokens have the new claims once they are refreshed. Throws `AuthAdminError` with the code
  /// `CLAIMS_TOO_LARGE` for more than 1000 characters of JSON.
  public func setCustomClaims(_ claims: MapValue?, of uid: String) async throws {
    let json = try JSONWriter.write(.map(claims ?? [:]))
    let text = String(decoding: json, as: UTF8.self)
    _ = try await send(
      "accounts:update",
      ["localId": .string(uid), "customAttributes": .string(text)]
    )
  }

  /// Disables a user, or enables the user again.
  public func setDisabled(_ isDisabled: Bool, of uid: String) async throws {
    _ = try await send(
      "accounts:update",
      ["localId": .string(uid), "disableUser": .boolean(isDisabled)]
    )
  }

  /// Ends all sessions of a user: tokens issued before this second are refused.
  public func revokeRefreshTokens(of uid: String) async throws {
    let now = FunctionClock.now.seconds
    _ = try await send(
      "accounts:update",
      ["localId": .string(uid), "validSince": .string("\(now)")]
    )
  }

  /// Deletes a user; throws `AuthAdminError` with the code `USER_NOT_FOUND` if there is none.
  public func deleteUser(_ uid: String) async throws {
    _ = try await send("accounts:delete", ["localId": .string(uid)])
  }

  // MARK: - Requests

  private func lookUp(_ fields: MapValue) async throws -> UserRecord? {
    guard case .array(let users)? = try await send("accounts:lookup", fields)["users"],
      case .map(let user)? = users.first
    else { return nil }
    return UserRecord(stored: user)
  }

  private func send(_ method: String, _ fields: MapValue) async throws -> MapValue {
    guard let project else {
      throw AuthAdminError(
        code: "PROJECT_NOT_FOUND",
        message: "GCLOUD_PROJECT is not set; set it to the project's id, such as demo-psst."
      )
    }
    var request = OutboundRequest(
      method: "POST",
      url: "\(origin)/v1/projects/\(project)/\(method)",
      headers: [
        "content-type": "application/json", "authorization": "Bearer \(try await token())",
      ]
    )
    request.body = try JSONWriter.write(.map(fields))
    let response = try await http.send(request)
    // A body that is not JSON, such as a proxy's page, becomes an error of its HTTP status.
    let json = try? JSONReader.read(response.body)
    guard response.isSuccess, case .map(let reply)? = json else {
      throw AuthAdminError(response, json)
    }
    return reply
  }

  private func token() async throws -> String {
    if isEmulated { return "owner" }
    guard let credentials else {
      throw AuthAdminError(
        code: "INVALID_CREDENTIAL",
        message: "FIREBASE_AUTH_EMULATOR_HOST is not set, and there are no credentials for Google; "
          + "set it to the emulator's address, such as 127.0.0.1:9099, or "
          + "GOOGLE_APPLICATION_CREDENTIALS to the path of a key file."
      )
    }
    return try await credentials.token()
  }
}

/// The error of a request of `AuthAdmin` that Auth has refused.
public struct AuthAdminError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The code of Firebase's API, such as `USER_NOT_FOUND`.
  public var code: String
  /// The code, with an explanation if Auth has sent one.
  public var message: String

  init(code: String, message: String) {
    self.code = code
    self.message = message
  }

  fileprivate init(_ response: OutboundResponse, _ json: FirestoreValue?) {
    guard case .map(let body)? = json, case .map(let error)? = body["error"],
      case .string(let message)? = error["message"]
    else {
      self.init(code: "INTERNAL_ERROR", message: "Auth returned HTTP \(response.status).")
      return
    }
    let code = message.firstRange(of: " : ").map { String(message[..<$0.lowerBound]) }
    self.init(code: code ?? message, message: message)
  }

  /// The message of Auth.
  public var description: String { message }
}

extension UserRecord {
  /// Reads a user in the form of Auth's REST API.
  fileprivate init?(stored fields: MapValue) {
    func text(_ name: String) -> String? {
      if case .string(let text)? = fields[name] { text } else { nil }
    }
    func time(_ name: String) -> Timestamp? {
      text(name).flatMap { Int64($0) }.map { Timestamp(microseconds: $0 * 1000) }
    }
    guard let uid = text("localId") else { return nil }
    self.init(
      uid: uid,
      email: text("email"),
      isEmailVerified: fields["emailVerified"] == .boolean(true),
      displayName: text("displayName"),
      photoURL: text("photoUrl"),
      phoneNumber: text("phoneNumber"),
      isDisabled: fields["disabled"] == .boolean(true),
      creationTime: time("createdAt"),
      lastSignInTime: time("lastLoginAt"),
      tenantID: text("tenantId")
    )
    // Claims that are no JSON object are not those of an SDK; the user has none then.
    if let claims = text("customAttributes"),
      case .map(let map)? = try? JSONReader.read(claims.utf8)
    {
      customClaims = map
    }
    guard case .array(let entries)? = fields["providerUserInfo"] else { return }
    providers = entries.compactMap { entry in
      guard case .map(let fields) = entry, case .string(let id)? = fields["providerId"] else {
        return nil
      }
      var provider = Provider(id: id)
      if case .string(let rawID)? = fields["rawId"] { provider.uid = rawID }
      if case .string(let email)? = fields["email"] { provider.email = email }
      return provider
    }
  }
}
