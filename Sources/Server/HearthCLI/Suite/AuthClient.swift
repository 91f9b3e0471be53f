import AuthAccounts
import EmulatorSuite
import Identifiers
import JSONText
import OutboundHTTP

/// A client of the suite's Auth service that acts as the administrator.
struct AuthClient {
  private let address: ServiceAddress
  private let project: String
  private let http = OutboundClient()
  private static let service = "/identitytoolkit.googleapis.com/v1"

  /// Creates a client of the Auth service in the suite of a hub.
  init(_ hub: ControlClient) async throws {
    let suite = try await hub.get("/hearth/v1/suite", as: SuiteDescription.self)
    guard let address = suite.services["auth"] else {
      throw CommandError("The suite has no Auth service; start it again with this version.")
    }
    self.address = address
    project = suite.project
  }

  /// Sends a request for a method, and decodes the response.
  func send<Reply: Decodable>(
    _ method: String,
    _ body: JSONObjectText = JSONObjectText(),
    as reply: Reply.Type = Nothing.self
  ) async throws -> Reply {
    let path = "\(Self.service)/projects/\(project.percentEncoded)/\(method)"
    return try await send("POST", path: path, body.bytes)
  }

  /// The response of a method of which only the success matters.
  struct Nothing: Decodable {}

  private struct Failure: Decodable {
    struct Detail: Decodable { var message: String }
    var error: Detail
  }

  private func send<Reply: Decodable>(
    _ verb: String,
    path: String,
    _ body: [UInt8] = [],
    as reply: Reply.Type = Reply.self
  ) async throws -> Reply {
    var request = OutboundRequest(
      method: verb,
      url: "http://\(address.host):\(address.port)\(path)",
      headers: ["content-type": "application/json", "authorization": "Bearer owner"]
    )
    request.body = body
    let response = try await http.send(request)
    guard response.isSuccess else {
      // Without JSON in the body, the status is all there is to tell.
      let failure = try? Failure(decodingJSON: response.body)
      throw CommandError(
        failure.map { Self.sentence($0.error.message) } ?? "Auth returned HTTP \(response.status)."
      )
    }
    return try Reply(decodingJSON: response.body)
  }

  /// Returns the user with an id, or with an address if the text contains @; nil if there is none.
  func user(_ name: String) async throws -> UserAccount? {
    struct Reply: Decodable { var users: [UserAccount]? }
    var body = JSONObjectText()
    let key = name.contains("@") ? "email" : "localId"
    body.set(key, json: JSONObjectText.array([Array(jsonQuoted(name).utf8)]))
    return try await send("accounts:lookup", body, as: Reply.self).users?.first
  }

  /// Returns the user with an id or an address; throws if there is none.
  func existingUser(_ name: String) async throws -> UserAccount {
    if let user = try await user(name) { return user }
    let known = try await page(after: nil).users.flatMap { [$0.email, $0.localId] }
    let question = NearestName.question(name, among: known.compactMap(\.self))
    throw CommandError(
      "There is no user \(name).\(question) `hearth auth list` shows the users, "
        + "`hearth auth create` makes one."
    )
  }

  /// Returns a page of users after an id; `next` is nil for the last page.
  func page(after token: String?) async throws -> (users: [UserAccount], next: String?) {
    struct Reply: Decodable {
      var users: [UserAccount]?
      var nextPageToken: String?
    }
    let next = token.map { "&nextPageToken=\($0.percentEncoded)" } ?? ""
    let method = "accounts:batchGet?maxResults=1000\(next)"
    let path = "\(Self.service)/projects/\(project.percentEncoded)/\(method)"
    let reply: Reply = try await send("GET", path: path)
    return (reply.users ?? [], reply.nextPageToken)
  }

  /// Returns an ID token of a user, with further claims for the session.
  func token(of user: UserAccount, claims: String? = nil) async throws -> String {
    struct Reply: Decodable { var idToken: String }
    var body = JSONObjectText()
    body.set("localId", user.localId)
    body.set("customAttributes", claims)
    let path = "/emulator/v1/projects/\(project.percentEncoded)/tokens"
    return try await send("POST", path: path, body.bytes, as: Reply.self).idToken
  }
}

extension AuthClient {
  /// Returns a sentence for an error of the API, with its code.
  private static func sentence(_ message: String) -> String {
    let code = String(message.prefix { $0 != " " })
    return sentences[code].map { "\($0) (\(code))" } ?? message
  }

  private static let sentences = [
    "EMAIL_EXISTS": "There is already a user with this address; `hearth auth list` shows it.",
    "DUPLICATE_LOCAL_ID": "There is already a user with this uid.",
    "INVALID_EMAIL": "This is not an e-mail address.",
    "USER_DISABLED": "This user is disabled.",
    "CLAIMS_TOO_LARGE": "The claims have more than 1000 characters.",
  ]
}
