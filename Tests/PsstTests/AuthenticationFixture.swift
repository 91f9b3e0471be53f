import FirestoreClient
import Foundation
import FunctionsTesting
import OutboundHTTP
@testable import PsstFunctions
import PsstModels
import PsstBackend
import PsstServices
import Synchronization
import Testing

/// Psst's functions on users, its rules, and the service with which its app signs up users.
struct AuthenticationFixture: Sendable {
  let suite: FunctionsSuite
  let line: Line
  let commits: FaultyFirestore
  let service: AuthenticationService
  let functions: AppFunctions

  /// A connection to Auth that can break before a request or before its response.
  final class Line: HTTPTransport {
    let base: any HTTPTransport
    /// The number of requests until the connection breaks; nil never breaks it.
    let breaks = Mutex<(requests: Int, losesResponse: Bool)?>(nil)

    init(_ base: any HTTPTransport) { self.base = base }

    func send(_ request: OutboundRequest) async throws -> OutboundResponse {
      let fault = breaks.withLock { fault -> (requests: Int, losesResponse: Bool)? in
        guard let current = fault else { return nil }
        guard current.requests == 0 else {
          fault = (current.requests - 1, current.losesResponse)
          return nil
        }
        fault = nil
        return current
      }
      guard let fault else { return try await base.send(request) }
      if fault.losesResponse { _ = try await base.send(request) }
      throw OutboundHTTPError(.failed, "The line is down.")
    }
  }

  static func run(_ test: (AuthenticationFixture) async throws -> Void) async throws {
    let holder = Mutex<TestEnvironment?>(nil)
    try await withFunctions(Self.app) { environment in
      holder.withLock { $0 = environment }
      let services = BackendServices(
        firestore: environment.firestore,
        settings: try PsstSettings(environment: [:]),
        http: environment.http
      )
      let users = AuthAdmin(environment: environment.variables, http: environment.http)
      return AppFunctions(services: services, users: users)
    } test: { suite, functions in
      try suite.loadRules(file: rulesPath)
      guard let environment = holder.withLock({ $0 }) else { return }
      let line = Line(environment.http)
      let commits = FaultyFirestore(environment.firestore)
      let fixture = AuthenticationFixture(
        suite: suite,
        line: line,
        commits: commits,
        service: service(environment, line, commits.firestore),
        functions: functions
      )
      try await test(fixture)
    }
  }

  /// Returns the service of an app that begins anew, on the same line.
  static func service(
    _ environment: TestEnvironment,
    _ line: any HTTPTransport,
    _ firestore: Firestore
  ) -> AuthenticationService {
    AuthenticationService(
      settings: AuthenticationSettings(environment: environment.variables),
      firestore: firestore,
      http: line,
      pause: { _ in },
      now: { environment.now.date }
    )
  }

  /// The app of the functions on users only.
  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp {
      functions.checkSignUp
      functions.removeUnfinishedSignUp
    }
  }

  private static let rulesPath = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../firestore.rules").standardizedFileURL.path

  func signUp(
    _ email: String = "tina@e.example",
    password: String = "secret1",
    name: String = "Tina"
  ) async throws -> AuthenticationService.Session {
    try await service.signUp(
      email: email,
      password: password,
      displayName: name,
      role: .trainer
    )
    guard let session = service.currentUser else { throw AuthenticationError.notAuthenticated }
    return session
  }

  /// Runs the schedule now.
  func removeUnfinished() async throws {
    let run = try await suite.runSchedule(functions.removeUnfinishedSignUp)
    #expect(run.state == .succeeded)
  }

  func user(_ uid: String) async throws -> User? {
    let document = try await suite.firestore.document("users/\(uid)").get()
    return document.exists ? try document.data(as: User.self) : nil
  }
}
