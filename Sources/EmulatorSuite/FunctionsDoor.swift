import Events
import Foundation
import FunctionsGateway
import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
import NIOCore
import RuntimeSupport

/// The port of the functions: the calls of clients, and beside them the routes by which Firebase's
/// tools and emulators list functions and hand in events.
struct FunctionsDoor: Sendable {
  let project: String
  let gateway: InvocationGateway
  let functions: @Sendable () -> [String: FunctionEndpoint]
  let invoker: any FunctionInvoker
  /// Where the functions come from, for the list.
  let folder: String?
  let originGuard: LoopbackGuard
  /// Whether functions get events at this moment.
  let isEnabled: @Sendable () async -> Bool
  /// Hands an event of another service to the functions that wait for it.
  let publish: @Sendable (CloudEvent) async throws -> Void

  /// Answers one request.
  func respond(to request: Request, _ context: HTTPContext) async -> Response {
    let segments = request.pathSegments ?? []
    if segments == ["backends"] { return backends(request) }
    // A project's id is longer than this word, so no call is meant.
    guard segments.first == "functions", segments.count >= 4, segments[1] == "projects" else {
      return await gateway.respond(to: request, context)
    }
    // Events make functions write, so no page of another site may send them.
    if let refusal = originGuard.refusal(of: request) { return refusal }
    do {
      switch (request.method, segments[3], segments.count) {
      case (.post, "triggers", 5): return try await trigger(segments[4], request)
      case (.post, "trigger_multicast", 4): return try await multicast(request)
      default: return .text(.notFound, "There is no \(request.method) \(request.uri.path).")
      }
    } catch {
      return .error(error)
    }
  }

  // MARK: - The list

  /// `GET /backends`, which Firebase's user interface reads from a page of its own.
  ///
  /// The environment is left empty: any page may read this.
  private func backends(_ request: Request) -> Response {
    let policy = CORSPolicy(methods: "GET")
    if let preflight = policy.preflight(request) { return preflight }
    let triggers = functions().sorted { $0.key < $1.key }.map(EmulatedTrigger.init)
    let backend = Backends.Backend(directory: folder ?? "", env: [:], functionTriggers: triggers)
    // Strings and numbers always encode.
    var response =
      (try? Response.json(encoding: Backends(backends: [backend])))
      ?? .error(.internal, "The functions cannot be listed.")
    policy.apply(to: &response, for: request)
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

  /// A function as Firebase's tools describe it.
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

  /// Runs one event function with the event as it came, and answers as it does.
  private func trigger(_ key: String, _ request: Request) async throws -> Response {
    let triggers = functions().filter { $0.value.eventTrigger != nil }
    guard let name = Self.name(of: key, among: triggers) else {
      let names = triggers.keys.sorted().joined(separator: ", ")
      return .text(.notFound, "Function \(key) does not exist, valid functions are: \(names)")
    }
    guard await isEnabled() else { return Response(status: .noContent) }
    var body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    if request.headers[.contentType] == "application/protobuf" {
      // Google's emulator sends the message as text.
      body = Self.decodedBase64(body) ?? body
    }
    var head = request.head
    head.path = "/"
    let id = RandomID.make()
    let reply = try await invoker.invoke(
      InvocationRequest(id: id, function: name, head: head, body: body)
    )
    let answer = try await reply.body.collect(upTo: Self.bodyBytesMax)
    return Response(
      status: reply.head.status,
      headers: reply.head.headerFields,
      body: ResponseBody(byteBuffer: answer)
    )
  }

  /// Takes an event for whichever functions wait for it; the answer does not wait for them.
  private func multicast(_ request: Request) async throws -> Response {
    let body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    let event = try MulticastEvent(
      Array(body.readableBytesView),
      isCloudEvent: request.headers[.contentType]?.contains("cloudevent") ?? false
    )
    if await isEnabled() { try await publish(event.cloudEvent) }
    return .json(#"{"status":"multicast_acknowledged"}"#)
  }

  /// The function that a key is of; where one name begins with another, the longer one.
  static func name(of key: String, among triggers: [String: FunctionEndpoint]) -> String? {
    triggers.filter { isKey(key, of: $0.key, in: $0.value.regions) }.keys
      .max { $0.utf8.count < $1.utf8.count }
  }

  /// Whether a key is a function's: `REGION-NAME`, then for events a generation and a channel.
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

  private static let bodyBytesMax = 10 << 20
}

extension Response {
  /// A reply of plain words.
  fileprivate static func text(_ status: HTTPResponse.Status, _ text: String) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text))
    )
  }
}
