import AuthAccounts
import Cryptography
import EventLog
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import Logging
import NIOCore
import StorageEngine
import TestSupport

@testable import AuthEmulator

/// The Auth API over a store in memory, with a clock that the test sets.
final class AuthFixture: Sendable {
  let storage = FaultyStorage()
  let store: AccountStore
  let service: AuthService
  private let clock = WallClock()

  init(blockingFunctions: any BlockingFunctions = NoBlockingFunctions()) {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    store = AccountStore(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: logger),
      project: "demo-test",
      now: clock.now
    )
    service = AuthService(store: store, blockingFunctions: blockingFunctions, logger: logger)
  }

  func passSeconds(_ seconds: Int64) {
    clock.advance(by: .seconds(seconds))
  }

  /// A response whose body is a JSON object.
  struct Reply {
    var status: Int
    var body: [String: Any]

    var error: String? { (body["error"] as? [String: Any])?["message"] as? String }
    func text(_ name: String) -> String { body[name] as? String ?? "" }
  }

  /// Calls a method as an app does, or as an administrator.
  func call(
    _ method: String,
    _ body: [String: Any] = [:],
    asAdmin: Bool = false
  ) async throws -> Reply {
    var head = HTTPRequest(
      method: .post,
      scheme: "http",
      authority: "127.0.0.1:9099",
      path: asAdmin
        ? "/identitytoolkit.googleapis.com/v1/projects/demo-test/\(method)"
        : "/identitytoolkit.googleapis.com/v1/\(method)?key=any"
    )
    if asAdmin { head.headerFields[.authorization] = "Bearer owner" }
    let json = try JSONSerialization.data(withJSONObject: body)
    let response = await service.respond(
      to: Request(head: head, body: .whole(ByteBuffer(bytes: json)))
    )
    let bytes = try await response.body.collect(upTo: 1 << 20)
    let object = try JSONSerialization.jsonObject(with: Data(bytes.readableBytesView))
    return Reply(status: response.head.status.code, body: object as? [String: Any] ?? [:])
  }

  /// Returns the members of a sign-in with an account at Google whose ID token has these claims.
  static func credential(_ claims: String) -> [String: Any] {
    ["requestUri": "http://localhost", "postBody": "providerId=google.com&id_token=\(claims)"]
  }

  func signUp(_ email: String, password: String = "secret1") async throws -> Reply {
    try await call("accounts:signUp", ["email": email, "password": password])
  }

  /// The claims of an ID token.
  static func claims(_ token: String) throws -> [String: Any] {
    let bytes = Base64URL.decode(token.split(separator: ".")[1]) ?? []
    let json = try JSONSerialization.jsonObject(with: Data(bytes))
    return json as? [String: Any] ?? [:]
  }
}
