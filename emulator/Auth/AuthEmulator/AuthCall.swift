import AuthAccounts
import HTTPSupport
import HTTPTypes
import JSONText
import NIOCore
import StatusCodes

/// One request to the API: its method, its body and the rights of its sender.
struct AuthCall: Sendable {
  let request: Request
  /// The name of the method, such as `signUp`; that of an action on the project for others.
  let method: String
  /// The project in the path; nil if the path has none.
  let project: String?
  /// True if the request has an administrator's credentials.
  let isAdmin: Bool
  private let bytes: [UInt8]

  /// Reads the body of a request.
  init(_ request: Request, route: AuthRoute, isAdmin: Bool) async throws {
    self.request = request
    method = route.method
    project = route.project
    self.isAdmin = isAdmin
    let bytesMax = route.method == "batchCreate" ? Self.batchBytesMax : Self.bodyBytesMax
    bytes = Array(try await request.wholeBody(upTo: bytesMax).readableBytesView)
  }

  /// Decodes the body; an empty body is an empty object.
  func body() throws(AuthError) -> AuthRequestBody { try decoded() }

  /// Decodes the body of a method whose members have other types than those of most methods.
  func decoded<Body: Decodable>() throws(AuthError) -> Body {
    do {
      return try Body(
        decodingJSON: bytes.isEmpty ? Array("{}".utf8) : bytes,
        valuesMax: method == "batchCreate" ? Self.batchValuesMax : .max
      )
    } catch let DecodingError.typeMismatch(_, context) {
      throw Self.malformed(context.codingPath)
    } catch let DecodingError.valueNotFound(_, context) {
      throw Self.malformed(context.codingPath)
    } catch let DecodingError.keyNotFound(key, context) {
      throw Self.malformed(context.codingPath + [key])
    } catch {
      let reason = (error as? JSONSyntaxError).map { ": \($0.reason) at byte \($0.offset)" }
      throw AuthError(
        .invalidArgument,
        "Invalid JSON payload received. The body is not a JSON object\(reason ?? "").",
        reason: "badRequest"
      )
    }
  }

  /// The body as text; empty if it is not UTF-8.
  var text: String { String(validating: bytes, as: UTF8.self) ?? "" }

  private static func malformed(_ path: [any CodingKey]) -> AuthError {
    let name = path.map { key in key.intValue.map { "[\($0)]" } ?? key.stringValue }
      .joined(separator: ".")
    return AuthError(
      .invalidArgument,
      "Invalid JSON payload received. Invalid value at '\(name.prefix(200))'.",
      reason: "invalid"
    )
  }

  /// The origin of this service as the client addresses it, for links.
  var origin: String { "http://\(request.head.authority ?? "127.0.0.1:9099")" }

  /// Large enough for a batch of a thousand users with claims and several providers.
  private static let batchBytesMax = 10 << 20
  /// The maximum number of values in a batch, a hundred for each user.
  ///
  /// Without a bound, millions of empty objects keep a shared thread for most of a second.
  private static let batchValuesMax = 100 * AuthService.batchMax
  /// Large enough for all other requests, of which those with a thousand ids are the longest.
  private static let bodyBytesMax = 256 << 10
}

/// The method and the project that a path names.
struct AuthRoute: Sendable, Equatable {
  var method: String
  var project: String?

  init(method: String) { self.method = method }

  /// Finds the method for the path of a request; nil if there is none.
  ///
  /// The path begins with the name of Google's service, and has Google's form after it.
  init?(_ request: Request) {
    guard var path = request.pathSegments, let service = path.first else { return nil }
    path.removeFirst()
    switch (service, path.first) {
    case ("identitytoolkit.googleapis.com", "v1"?), ("identitytoolkit.googleapis.com", "v2"?):
      path.removeFirst()
      self.init(verb: request.method, path)
    case ("www.googleapis.com", "identitytoolkit"?)
    where path.count == 4 && path[1] == "v3" && path[2] == "relyingparty":
      guard let method = Self.methodsOfVersion3[path[3]] else { return nil }
      self.init(method: method)
    case ("securetoken.googleapis.com", "v1"?) where path == ["v1", "token"]:
      self.init(method: "token")
    default: return nil
    }
  }

  private init?(verb: HTTPRequest.Method, _ path: [String]) {
    switch path.count {
    case 1:
      guard let colon = path[0].firstIndex(of: ":") else {
        guard ["projects", "recaptchaParams"].contains(path[0]) else { return nil }
        method = path[0]
        break
      }
      guard path[0][..<colon] == "accounts" else { return nil }
      method = String(path[0][path[0].index(after: colon)...])
    case 2 where path[0] == "projects":
      let parts = path[1].split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { return nil }
      (project, method) = (parts[0], parts[1])
    case 2 where path[0].hasPrefix("accounts"): method = path.joined(separator: "/")
    case 3 where path[0] == "projects":
      project = path[1]
      let parts = path[2].split(separator: ":", maxSplits: 1).map(String.init)
      method =
        switch parts.first {
        case "accounts"?: parts.count == 2 ? parts[1] : "signUp"
        case "config"?: verb == .get ? "getConfig" : "updateConfig"
        default: Self.collections.contains(path[2]) ? path[2] : ""
        }
    case 4... where path[0] == "projects" && Self.collections.contains(path[2]):
      project = path[1]
      method = path[2]
    default: return nil
    }
  }

  /// What a project has beside accounts and settings.
  private static let collections: Set = [
    "tenants", "oauthIdpConfigs", "inboundSamlConfigs", "defaultSupportedIdpConfigs",
  ]

  /// The methods of the API's third version, which old clients use.
  private static let methodsOfVersion3 = [
    "verifyPassword": "signInWithPassword", "signupNewUser": "signUp",
    "verifyAssertion": "signInWithIdp", "verifyCustomToken": "signInWithCustomToken",
    "getAccountInfo": "lookup", "setAccountInfo": "update", "deleteAccount": "delete",
    "getOobConfirmationCode": "sendOobCode", "resetPassword": "resetPassword",
    "emailLinkSignin": "signInWithEmailLink", "sendVerificationCode": "sendVerificationCode",
    "verifyPhoneNumber": "signInWithPhoneNumber", "createAuthUri": "createAuthUri",
    "uploadAccount": "batchCreate", "downloadAccount": "batchGet",
    "getProjectConfig": "projects", "getRecaptchaParam": "recaptchaParams",
    "createSessionCookie": "createSessionCookie",
  ]
}
