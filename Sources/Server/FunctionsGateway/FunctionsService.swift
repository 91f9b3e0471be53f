import StatusCodes
package import Events
import Foundation
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identifiers
package import Invocation
package import Logging
package import Manifests
package import NIOCore

/// The service on the port of the functions.
///
/// It accepts the calls of clients, and the routes through which Firebase's tools and emulators
/// list functions and post events.
package struct FunctionsService: ImmediateResponder {
  private let gateway: InvocationGateway
  private let functions: @Sendable () -> [String: FunctionEndpoint]
  private let invoker: any FunctionInvoker
  private let folder: String?
  private let isEnabled: @Sendable () async -> Bool
  private let publish: @Sendable (CloudEvent) async throws -> Void

  /// Creates the service for the functions of one project.
  ///
  /// - Parameters:
  ///   - project: The project ID that calls contain in their path.
  ///   - functions: Returns the current functions; called on each request.
  ///   - invoker: Runs the functions.
  ///   - folder: The folder of the functions' sources, for the list.
  ///   - isEnabled: Returns true if functions currently receive events.
  ///   - publish: Delivers an event of another service to the functions that wait for it.
  ///   - makeID: Creates the IDs of invocations.
  ///   - logger: Logs calls to other projects and invocations that fail without a status.
  package init(
    project: String,
    functions: @escaping @Sendable () -> [String: FunctionEndpoint],
    invoker: any FunctionInvoker,
    folder: String? = nil,
    isEnabled: @escaping @Sendable () async -> Bool,
    publish: @escaping @Sendable (CloudEvent) async throws -> Void,
    makeID: @escaping @Sendable () -> String = { RandomID.make() },
    logger: Logger
  ) {
    gateway = InvocationGateway(
      project: project,
      functions: functions,
      invoker: invoker,
      makeID: makeID,
      logger: logger
    )
    self.functions = functions
    self.invoker = invoker
    self.folder = folder
    self.isEnabled = isEnabled
    self.publish = publish
  }

  /// Begins to handle a call; returns nil for routes of Firebase's tools.
  ///
  /// `respond` handles those routes.
  package func begin(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> (@Sendable () -> Void)? {
    let isTools = request.path == "/backends" || request.path.hasPrefix("/functions/projects/")
    return isTools ? nil : gateway.begin(request, on: eventLoop, reply: reply)
  }

  /// Handles any request; an invocation is cancelled when its client disconnects.
  package func respond(to request: Request, _ context: HTTPContext) async -> Response {
    let segments = request.pathSegments ?? []
    if segments == ["backends"] { return backends(request) }
    // Any other path is a call. A call's second segment is a region, and none is named `projects`.
    guard segments.first == "functions", segments.count >= 4, segments[1] == "projects" else {
      return await gateway.respond(to: request, context)
    }
    do {
      switch (request.method, segments[3], segments.count) {
      case (.post, "triggers", 5): return try await trigger(segments[4], request)
      case (.post, "trigger_multicast", 4): return try await multicast(request)
      default: return .text(.notFound, "There is no \(request.method) \(request.path).")
      }
    } catch {
      return .error(error)
    }
  }

  // MARK: - Function list

  /// Handles `GET /backends`, which Firebase's user interface reads from its own origin.
  ///
  /// The environment is left empty, because any web page may read this.
  private func backends(_ request: Request) -> Response {
    let policy = CORSPolicy(methods: "GET")
    if let preflight = policy.preflight(request.head) {
      return Response(status: preflight.status, headers: preflight.headerFields)
    }
    let triggers = functions().sorted { $0.key < $1.key }.map(EmulatedTrigger.init)
    let backend = Backends.Backend(directory: folder ?? "", env: [:], functionTriggers: triggers)
    // Encoding strings and numbers never fails.
    var response =
      (try? Response.json(encoding: Backends(backends: [backend])))
      ?? .error(.internal, "The functions cannot be listed.")
    policy.apply(to: &response.head, for: request.head)
    return response
  }

  private struct Backends: Encodable {
    struct Backend: Encodable {
      var directory: String
      var env: [String: String]
      var functionTriggers: [EmulatedTrigger]
    }
    var backends: [Backend]
  }

  /// A function in the format of Firebase's tools.
  private struct EmulatedTrigger: Encodable {
    struct Empty: Encodable {}
    struct Event: Encodable {
      var eventType: String
      var eventFilters: [String: String]
      var eventFilterPathPatterns: [String: String]?
      var retry: Bool
    }
    var id: String
    var name: String
    var entryPoint: String
    var platform: String
    var region: String
    var timeoutSeconds: Int?
    var labels: [String: String]
    var httpsTrigger: Empty?
    var eventTrigger: Event?
    var schedule: FunctionEndpoint.ScheduleTrigger?
    var taskQueueTrigger: FunctionEndpoint.TaskQueueTrigger?

    init(_ name: String, _ endpoint: FunctionEndpoint) {
      region = endpoint.regions[0]
      id = "\(region)-\(name)"
      self.name = name
      entryPoint = endpoint.entryPoint
      platform = endpoint.platform
      timeoutSeconds = endpoint.timeoutSeconds
      labels = endpoint.callableTrigger == nil ? [:] : ["deployment-callable": "true"]
      if endpoint.httpsTrigger != nil || endpoint.callableTrigger != nil { httpsTrigger = Empty() }
      eventTrigger = endpoint.eventTrigger.map {
        Event(
          eventType: $0.eventType,
          eventFilters: $0.eventFilters,
          eventFilterPathPatterns: $0.eventFilterPathPatterns,
          retry: $0.retry
        )
      }
      schedule = endpoint.scheduleTrigger
      taskQueueTrigger = endpoint.taskQueueTrigger
    }
  }

  // MARK: - Events

  /// Runs one event function with an unchanged event, and returns its response.
  private func trigger(_ key: String, _ request: Request) async throws -> Response {
    let triggers = functions().filter { $0.value.eventTrigger != nil }
    guard let name = Self.name(of: key, among: triggers) else {
      let names = triggers.keys.sorted().joined(separator: ", ")
      return .text(.notFound, "Function \(key) does not exist, valid functions are: \(names)")
    }
    guard await isEnabled() else { return Response(status: .noContent) }
    var body = try await request.wholeBody(upTo: FunctionLimits.bodyBytesMax)
    if request.headers[.contentType] == "application/protobuf" {
      // Google's emulator sends the message as Base64 text.
      body = Self.decodedBase64(body) ?? body
    }
    var head = request.head
    head.path = "/"
    head.headerFields.removeServersOwn(prefixes: HTTPFields.serversOwn)
    let id = RandomID.make()
    let reply = try await invoker.invoke(
      InvocationRequest(id: id, function: name, head: head, body: body)
    )
    let answer = try await reply.body.collect(upTo: FunctionLimits.bodyBytesMax)
    return Response(
      status: reply.head.status,
      headers: reply.head.headerFields,
      body: .whole(answer)
    )
  }

  /// Accepts an event for the functions that wait for it; responds without waiting for them.
  private func multicast(_ request: Request) async throws -> Response {
    let body = try await request.wholeBody(upTo: FunctionLimits.bodyBytesMax)
    let event = try MulticastEvent(
      Array(body.readableBytesView),
      isCloudEvent: request.headers[.contentType]?.contains("cloudevent") ?? false
    )
    if await isEnabled() { try await publish(event.cloudEvent) }
    return .json(#"{"status":"multicast_acknowledged"}"#)
  }

  /// Returns the function for a trigger key.
  ///
  /// If the name of one function begins with the name of another, the longer match counts.
  static func name(of key: String, among triggers: [String: FunctionEndpoint]) -> String? {
    triggers.filter { isKey(key, of: $0.key, in: $0.value.regions) }.keys
      .max { $0.utf8.count < $1.utf8.count }
  }

  /// True if a trigger key belongs to a function.
  ///
  /// A key is `REGION-NAME`, followed for events by a generation and a channel.
  static func isKey(_ key: String, of name: String, in regions: [String]) -> Bool {
    regions.contains { region in
      let prefix = "\(region)-\(name)"
      guard key.hasPrefix(prefix) else { return false }
      let rest = key.dropFirst(prefix.count)
      return rest.isEmpty
        || rest.first == "-" && !rest.dropFirst().isEmpty
          && rest.dropFirst().prefix { $0 != "-" }.allSatisfy(\.isNumber)
    }
  }

  private static func decodedBase64(_ body: ByteBuffer) -> ByteBuffer? {
    Data(base64Encoded: String(buffer: body)).map { ByteBuffer(bytes: $0) }
  }

}

extension Response {
  /// Creates a plain-text response.
  fileprivate static func text(_ status: HTTPResponse.Status, _ text: String) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8"],
      body: .whole(ByteBuffer(string: text))
    )
  }
}
