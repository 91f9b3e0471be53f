import AuthAccounts
import EmulatorSuite
import Foundation
import JSONText
import OutboundHTTP

/// A client of the suite's Auth service that acts as the administrator.
struct AuthClient {
  private let address: ServiceAddress
  private let project: String
  private let http = OutboundClient()

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
    try await send("POST", "projects/\(project.percentEncoded)/\(method)", body.bytes)
  }

  /// The response of a method of which only the success matters.
  struct Nothing: Decodable {}

  private struct Failure: Decodable {
    struct Detail: Decodable { var message: String }
    var error: Detail
  }

  private func send<Reply: Decodable>(
    _ verb: String,
    _ path: String,
    _ body: [UInt8] = []
  ) async throws -> Reply {
    var request = OutboundRequest(
      method: verb,
      url: "http://\(address.host):\(address.port)/identitytoolkit.googleapis.com/v1/\(path)",
      headers: ["content-type": "application/json", "authorization": "Bearer owner"]
    )
    request.body = body
    let response = try await http.send(request)
    guard response.isSuccess else {
      let failure = try? JSONDecoder().decode(Failure.self, from: Data(response.body))
      throw CommandError(failure?.error.message ?? "Auth returned HTTP \(response.status).")
    }
    return try JSONDecoder().decode(Reply.self, from: Data(response.body))
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
    guard let user = try await user(name) else {
      throw CommandError(
        "There is no user \(name); `hearth auth list` shows them, `hearth auth create` makes one."
      )
    }
    return user
  }

  /// Returns a page of users after an id; `next` is nil for the last page.
  func page(after token: String?) async throws -> (users: [UserAccount], next: String?) {
    struct Reply: Decodable {
      var users: [UserAccount]?
      var nextPageToken: String?
    }
    let next = token.map { "&nextPageToken=\($0.percentEncoded)" } ?? ""
    let path = "projects/\(project.percentEncoded)/accounts:batchGet?maxResults=1000\(next)"
    let reply: Reply = try await send("GET", path)
    return (reply.users ?? [], reply.nextPageToken)
  }

  /// Signs in as a user and returns an ID token, with further claims for the session.
  func token(of user: UserAccount, claims: JSONObjectText? = nil) async throws -> String {
    struct Reply: Decodable { var idToken: String }
    var custom = JSONObjectText()
    custom.set("uid", user.localId)
    custom.set("claims", claims)
    var body = JSONObjectText()
    body.set("token", String(decoding: custom.bytes, as: UTF8.self))
    let reply: Reply = try await send("POST", "accounts:signInWithCustomToken", body.bytes)
    return reply.idToken
  }
}
