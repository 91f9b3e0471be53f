import FlowControl
import HTTP2Server
import HTTPMessages
import HTTPSupport
import Logging
import StatusCodes

/// A hint for clients that connect to the port of the wrong service.
///
/// A wrong port is the most common mistake of new users, and a plain 404 does not show it. Each
/// pair of services is logged only once, because a client with a wrong port retries endlessly.
final class WrongPort: Sendable {
  let service: SuiteService
  private let project: String
  private let addresses: @Sendable () -> [SuiteService: ServiceAddress]
  private let logger: Logger
  private let logged = OnceEach()

  /// Creates the hints for the port of `service`; `addresses` is called on each wrong request.
  init(
    of service: SuiteService,
    project: String,
    addresses: @escaping @Sendable () -> [SuiteService: ServiceAddress],
    logger: Logger
  ) {
    self.service = service
    self.project = project
    self.addresses = addresses
    self.logger = logger
  }

  /// Returns a 404 for an HTTP request that belongs to another service; nil if there is none.
  func refusal(of request: Request) -> Response? {
    guard let wanted = Self.service(answering: request.path, project: project),
      wanted != service, !(service == .database && request.path.hasSuffix(".json"))
    else { return nil }
    return .error(.notFound, note(wanted))
  }

  /// Returns a hint for a gRPC method that belongs to another service; nil if there is none.
  func hint(forMethod path: String) -> String? {
    guard path.hasPrefix("/google.firestore."), service != .firestore else { return nil }
    return note(.firestore)
  }

  /// Creates a router without methods, for ports without gRPC, that responds with the hint.
  func grpcServer() -> GRPCServer {
    GRPCServer(services: [], elsewhere: hint, logger: logger)
  }

  private func note(_ wanted: SuiteService) -> String {
    let address = addresses()[wanted].map { "\($0.host):\($0.port)" } ?? "another port"
    if logged.isNew(wanted.rawValue) {
      logger.warning(
        """
        Requests for \(wanted.title) at the port of \(service.title). Correct the client's address: \
        \(wanted.title) answers at \(address).
        """
      )
    }
    return "This is the port of \(service.title); \(wanted.title) answers at \(address)."
  }

  /// Returns the service that a path belongs to; nil if the path is ambiguous.
  ///
  /// A project ID has at least six characters, so segments such as `v1` are never project IDs.
  static func service(answering path: String, project: String) -> SuiteService? {
    let segments = path.split(separator: "/", omittingEmptySubsequences: true)
    switch segments.first {
    case "v1", "v1beta1":
      return segments.count > 3 && segments[1] == "projects" && segments[3] == "databases"
        ? .firestore : nil
    case "emulator":
      guard segments.count > 4, segments[1] == "v1", segments[2] == "projects" else {
        return segments.count > 1 && ["action", "auth"].contains(segments[1]) ? .auth : nil
      }
      let isAuth = ["accounts", "config", "oobCodes", "verificationCodes", "tenants", "tokens"]
        .contains(segments[4])
      return isAuth ? .auth : .firestore
    case "identitytoolkit.googleapis.com", "securetoken.googleapis.com", "www.googleapis.com":
      return .auth
    case ".json", ".lp", ".ws", ".settings", ".inspect": return .database
    case "hearth", "emulators", "_admin": return .hub
    case "ix", "indexes": return .vectors
    case "queueStats": return .tasks
    case "v2", "projects":
      let rest = segments.drop { $0 == "v2" }.dropFirst()
      return rest.count > 3 && rest.dropFirst(1).first == "locations"
        && rest.dropFirst(3).first == "queues" ? .tasks : nil
    case let first? where first == project:
      return segments.count >= 3 && segments[1].contains("-") ? .functions : nil
    default: return nil
    }
  }
}
