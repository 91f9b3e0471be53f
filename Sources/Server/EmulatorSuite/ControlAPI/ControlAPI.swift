import AuthEmulator
import DatabaseTree
import Deployment
import DocumentModel
import DocumentStore
import Events
import FirestoreEmulator
import FlowControl
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import JSONText
import Logging
import NIOCore
import QueryEngine
import RealtimeDatabaseEmulator
import StatusCodes
import StorageEngine
import TriggerDelivery
import WorkerPool

/// The hub: Firebase's discovery endpoints and Hearth's control API under `/hearth/v1/`.
///
/// The control API can deploy code and read data, so it requires the suite's token. Firebase's
/// endpoints do not, because Firebase's tools do not know the token.
struct ControlAPI: Sendable {
  let project: String
  let version: String
  let token: SecretToken
  /// The path of the file with the token, named in refusals.
  let serverFile: String
  let description: @Sendable () -> SuiteDescription
  let storage: any OrderedStorage
  let dataFolder: String
  let roster: ConnectionRoster
  let documents: DocumentDatabase
  let database: RealtimeDatabase
  let databaseService: RealtimeDatabaseService
  let queries: QueryRunner
  let rules: RulesPolicy
  let auth: AuthService
  let fleet: WorkerFleet
  let logs: FunctionLogStore
  let deliveries: DeliveryService
  let deployer: Deployer
  let transfer: DataTransfer
  let deliveryRequest: DeliveryRequest
  let time: VirtualTime
  let stopNotice: StopNotice
  let triggers: TriggerSwitch
  let logger: Logger

  /// Handles one request; `isConsole` is true if the console's page sent it in its session.
  func respond(
    to request: Request,
    _ context: HTTPContext,
    isConsole: Bool = false
  ) async -> Response {
    do {
      let (route, captures) = try permittedRoute(of: request, context, isConsole: isConsole)
      return try await route.handler(
        self,
        ControlRequest(request: request, context: context, captures: captures)
      )
    } catch {
      if !(error is any StatusConvertible), !(error is CancellationError) {
        logger.error("A control request failed", metadata: ["error": "\(error)"])
      }
      return .error(error)
    }
  }

  /// Returns the route of a request if the client may use it; the only place that checks access.
  private func permittedRoute(
    of request: Request,
    _ context: HTTPContext,
    isConsole: Bool
  ) throws -> (route: ControlRoute, captures: [String]) {
    let segments = request.pathSegments
    if segments?.first == "hearth", !isConsole, !token.isBearer(of: request.headers) {
      throw StatusError(
        .unauthenticated,
        "The control API asks for `Authorization: Bearer TOKEN` with the token of \(serverFile); "
          + "the commands of hearth find it there."
      )
    }
    guard let segments, let found = ControlRoute.find(request.method, segments, in: Self.routes)
    else {
      throw StatusError(.notFound, "The hub has no \(request.method) \(request.path).")
    }
    if let refusal = refusal(of: request, context, by: found.route.access) { throw refusal }
    guard !isConsole || found.route.isInConsole else {
      throw StatusError(
        .permissionDenied,
        "The console may not \(request.method) \(request.path); the commands of hearth may."
      )
    }
    return found
  }

  private func refusal(
    of request: Request,
    _ context: HTTPContext,
    by access: ControlRoute.Access
  ) -> StatusError? {
    switch access {
    case .anyClient: return nil
    case .thisMachine where context.isFromThisMachine: return nil
    case .thisMachine:
      return StatusError(
        .permissionDenied,
        "Only this machine may run functions in a debugger and ask for their settings."
      )
    case .thisMachineOrToken where context.isFromThisMachine || token.isBearer(of: request.headers):
      return nil
    case .thisMachineOrToken:
      return StatusError(
        .permissionDenied,
        "An export writes files, so only this machine may ask for one, or a client with "
          + "`Authorization: Bearer TOKEN` and the token of \(serverFile)."
      )
    }
  }

  // MARK: - Responses

  /// Creates a response of JSON lines, which are sent as they are produced.
  ///
  /// The response ends when `produce` returns; `produce` is cancelled when the client disconnects.
  /// It never waits for the client. A client that reads too slowly loses its oldest unread lines,
  /// and receives in their place the line that `gap` creates from their number.
  func lines(
    for client: ClientWatch,
    gap: @escaping @Sendable (Int) -> (any Encodable & Sendable)? = { _ in nil },
    _ produce:
      @escaping @Sendable (_ write: @escaping @Sendable (any Encodable & Sendable) -> Void)
      async -> Void
  ) -> Response {
    let (stream, source) = BoundedStream<ByteBuffer>.make(bytesMax: Self.lineBytesMax) { count in
      gap(count).map(Self.line)
    }
    let body = Response.Body.produced { write in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          await client.whileConnected {
            await produce { value in
              let line = Self.line(value)
              source.send(line, bytes: line.readableBytes)
            }
          }
          source.finish()
        }
        for await buffer in stream { try await write(buffer) }
        group.cancelAll()
      }
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: body)
  }

  /// Encodes a value as a line of JSON.
  static func line(_ value: any Encodable) -> ByteBuffer {
    // Encoding strings, numbers and Booleans never fails; a value that cannot be encoded is left
    // out.
    ByteBuffer(bytes: ((try? value.jsonBytes()) ?? []) + [0x0A])
  }

  /// The maximum number of past log lines in a response.
  static let linesMax = 10_000
  /// The maximum number of bytes in a response that wait for a slow reader.
  private static let lineBytesMax = 4 << 20
}
