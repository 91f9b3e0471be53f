import Events
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Invocation
import Manifests
import NIOCore
import StatusCodes

extension FunctionsService {
  // MARK: - Function list

  /// Handles `GET /backends`, which Firebase's user interface reads from its own origin.
  ///
  /// The environment is left empty, because any web page may read this.
  func backends(_ request: Request) -> Response {
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
    var blockingTrigger: FunctionEndpoint.BlockingTrigger?

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
      blockingTrigger = endpoint.blockingTrigger
    }
  }

  // MARK: - Events

  /// Runs one event function with an unchanged event, and returns its response.
  func trigger(_ key: String, _ request: Request) async throws -> Response {
    let reason = unserved()
    let triggers = functions().filter { $0.value.eventTrigger != nil }
    guard let name = Self.name(of: key, among: triggers) else {
      if let reason { throw StatusError(.unavailable, reason) }
      let names = triggers.keys.sorted().joined(separator: ", ")
      return .text(
        "Function \(key) does not exist, valid functions are: \(names)",
        status: .notFound
      )
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
    let reply = try await invoker.invoke(
      InvocationRequest(id: makeID(), function: name, head: head, body: body)
    )
    let answer = try await reply.body.collect(upTo: FunctionLimits.bodyBytesMax)
    return Response(
      status: reply.head.status,
      headers: reply.head.headerFields,
      body: .whole(answer)
    )
  }

  /// Accepts an event for the functions that wait for it; responds without waiting for them.
  func multicast(_ request: Request) async throws -> Response {
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
