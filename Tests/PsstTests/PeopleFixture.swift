import FirestoreClient
import Foundation
import FunctionsTesting
import OutboundHTTP
import PsstModels
import StatusCodes
import Synchronization
import Testing

@testable import PsstFunctions
@testable import PsstBackend
@testable import PsstServices

/// Trainers, clients and their app's services, under the project's access rules.
///
/// Tina and Tom are trainers, Carl, Cora and Cleo are clients. Olga has no role. Each has an
/// address such as `carl@psst.app`.
struct PeopleFixture: Sendable {
  let suite: FunctionsSuite
  let functions: AppFunctions
  /// The connection of all apps to the database, which can fail.
  let line: FaultyFirestore

  static let roles: [String: UserRole?] = [
    "tina": .trainer, "tom": .trainer, "carl": .client, "cora": .client, "cleo": .client,
    "olga": nil,
  ]

  /// Runs a test with its own suite and database.
  static func run(_ test: (PeopleFixture) async throws -> Void) async throws {
    try await withFunctions(Self.app) { environment in
      let services = BackendServices(
        firestore: environment.firestore,
        settings: try PsstSettings(environment: ["PSST_SEARCHES_PER_MINUTE": "1000"]),
        http: environment.http,
        retries: ServiceRetries(now: { environment.now.date })
      )
      return AppFunctions(services: services)
    } test: { suite, functions in
      try suite.loadRules(file: rulesPath)
      let fixture = PeopleFixture(
        suite: suite,
        functions: functions,
        line: FaultyFirestore(suite.firestore)
      )
      for (uid, role) in roles {
        var user = User(
          id: uid,
          displayName: uid.capitalized,
          email: "\(uid)@psst.app",
          role: role
        )
        user.photoURL = "https://psst.app/\(uid).jpg"
        try await suite.firestore.document("users/\(uid)").set(user)
      }
      try await test(fixture)
    }
  }

  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp {
      functions.createChat
      functions.validateRelationship
      functions.recordContact
    }
  }

  /// The path of the project's access rules.
  static let rulesPath = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../firestore.rules").standardizedFileURL.path

  /// Returns the services of a user's app.
  func app(_ uid: String, queueFolder: URL? = nil) -> AppServices {
    AppServices(
      uid: uid,
      tokens: UnsignedTokens(uid: uid),
      firestore: line.firestore,
      functions: "http://functions.test",
      http: SuiteFunctions(suite: suite, functions: functions),
      queueFolder: queueFolder
    )
  }

  /// Lets the check of relations cover a share of the users.
  func validateRelations(percent: Int = 100) async throws {
    try await suite.firestore.document(StoredFlags.path).set([
      "conditions": [
        ["name": "covered", "expression": .value("percent <= \(percent)")]
      ],
      "parameters": [
        "relationship_validation_enabled": [
          "defaultValue": ["value": "false"],
          "conditionalValues": ["covered": ["value": "true"]],
        ]
      ],
    ])
  }

  /// Returns the fields of a document as an administrator sees them; nil if it does not exist.
  func stored(_ path: String) async throws -> MapValue? {
    try await suite.firestore.document(path).get().document?.fields
  }

  /// Returns the ids of the documents of a collection, in order.
  func ids(_ collection: String) async throws -> [String] {
    try await suite.firestore.collection(collection).get().map(\.id)
  }
}

/// The unsigned tokens of one user, as the Auth emulator makes them.
struct UnsignedTokens: IDTokenSource {
  let uid: String

  func idToken(replacing rejected: String?) async throws -> String {
    func part(_ json: String) -> String {
      Data(json.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
    }
    let claims =
      #"{"sub":"\#(uid)","user_id":"\#(uid)","email":"\#(uid)@psst.app","aud":"demo-test"}"#
    return "\(part(#"{"alg":"none","typ":"JWT"}"#)).\(part(claims))."
  }
}

/// The callables of a suite behind the protocol of HTTP.
struct SuiteFunctions: HTTPTransport {
  let suite: FunctionsSuite
  let functions: AppFunctions

  private struct Envelope<Content: Codable>: Codable { var data: Content }
  private struct Result<Content: Codable>: Codable { var result: Content }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    switch request.url {
    case "http://functions.test/createChat":
      return try await call(functions.createChat, request)
    case "http://functions.test/validateRelationship":
      return try await call(functions.validateRelationship, request)
    default: throw OutboundHTTPError(.failed, "the suite has no function at \(request.url)")
    }
  }

  private func call<Input: Codable & Sendable, Output: Codable & Sendable>(
    _ function: OnCall<Input, Output>,
    _ request: OutboundRequest
  ) async throws -> OutboundResponse {
    let token = request.headers["Authorization"]?.dropFirst("Bearer ".count)
    let body = try JSONDecoder().decode(
      Envelope<Input>.self,
      from: Data(request.body)
    )
    do {
      let reply = try await suite.call(
        function,
        body.data,
        as: token.map { .raw(String($0)) } ?? .anonymous
      )
      return OutboundResponse(
        status: 200,
        body: Array(try JSONEncoder().encode(Result(result: reply)))
      )
    } catch let error as CallableError {
      let json = ["error": ["status": error.code.name, "message": error.message]]
      return OutboundResponse(
        status: error.code == .unauthenticated ? 401 : 400,
        body: Array(try JSONEncoder().encode(json))
      )
    }
  }
}
