import HTTPMessages
import HTTPSupport
import HTTPTypes
import TriggerDelivery

/// A request to the hub with the data that route handlers need.
struct ControlRequest: Sendable {
  var request: Request
  var context: HTTPContext
  /// The request's path segments that match the `*` segments of the route.
  var captures: [String]

  var query: QueryParameters { request.query }
  var client: ClientWatch { context.client }
}

/// A route of the hub: method, path, access and handler.
struct ControlRoute: Sendable {
  /// The clients that may use a route, after requests from foreign web pages have been refused.
  enum Access: Sendable {
    case anyClient
    /// Only clients on the machine of the suite.
    case thisMachine
    /// Clients on the machine of the suite, and other clients with the token.
    case thisMachineOrToken
  }

  typealias Handler = @Sendable (ControlAPI, ControlRequest) async throws -> Response

  let method: HTTPRequest.Method
  /// The segments of the path; `*` matches any one segment.
  let path: [Substring]
  let access: Access
  let handler: Handler
  /// True if the console may use the route without the suite's token.
  private(set) var isInConsole = false

  init(
    _ method: HTTPRequest.Method,
    _ path: String,
    for access: Access = .anyClient,
    _ handler: @escaping Handler
  ) {
    self.method = method
    self.path = path.split(separator: "/")
    self.access = access
    self.handler = handler
  }

  /// The route, also for the console.
  var inConsole: ControlRoute {
    var route = self
    route.isInConsole = true
    return route
  }

  /// Returns the route of a request and its captures; nil if there is none.
  ///
  /// If several routes match, the one with the fewest `*` segments is used, so their order does not
  /// matter.
  static func find(
    _ method: HTTPRequest.Method,
    _ segments: [String],
    in routes: [ControlRoute]
  ) -> (route: ControlRoute, captures: [String])? {
    var found: (route: ControlRoute, captures: [String])?
    // HEAD uses the route of GET; the connection leaves out the response body.
    let method = method == .head ? .get : method
    for route in routes where route.method == method {
      guard let captures = route.match(segments) else { continue }
      if captures.count < found?.captures.count ?? .max { found = (route, captures) }
    }
    return found
  }

  private func match(_ segments: [String]) -> [String]? {
    guard segments.count == path.count else { return nil }
    var captures: [String] = []
    for (wanted, segment) in zip(path, segments) {
      if wanted == "*" {
        captures.append(segment)
      } else if wanted != segment {
        return nil
      }
    }
    return captures
  }
}

extension ControlAPI {
  /// All routes of the hub.
  static let routes = consoleRoutes.map(\.inConsole) + commandRoutes

  /// The routes that the console may use, too: Firebase's endpoints, then Hearth's.
  private static let consoleRoutes: [ControlRoute] = [
    ControlRoute(.get, "") { api, _ in try api.hub() },
    ControlRoute(.get, "emulators") { api, _ in try api.emulators() },
    ControlRoute(.put, "functions/disableBackgroundTriggers") { api, _ in
      try await api.setTriggers(enabled: false)
    },
    ControlRoute(.put, "functions/enableBackgroundTriggers") { api, _ in
      try await api.setTriggers(enabled: true)
    },
    ControlRoute(.get, "metrics") { api, _ in api.metrics() },
    ControlRoute(.get, "hearth/v1/suite") { api, _ in try .json(encoding: api.description()) },
    ControlRoute(.get, "hearth/v1/functions") { api, _ in try .json(encoding: api.functions()) },
    ControlRoute(.get, "hearth/v1/functions/stats") { api, _ in
      try .json(encoding: api.functionStats())
    },
    ControlRoute(.post, "hearth/v1/functions/*/fire") {
      try await $0.fire($1.captures[0], $1.request)
    },
    ControlRoute(.post, "hearth/v1/functions/*/run") { try await $0.runSchedule($1.captures[0]) },
    ControlRoute(.get, "hearth/v1/deployments") { api, _ in
      try .json(encoding: await api.deployer.deployments())
    },
    ControlRoute(.get, "hearth/v1/triggers") { api, _ in
      try .json(encoding: api.triggersDescription())
    },
    ControlRoute(.get, "hearth/v1/import") { api, _ in try api.transfer.progress() },
    ControlRoute(.get, "hearth/v1/logs") { try await $0.logLines($1.query, $1.client) },
    ControlRoute(.get, "hearth/v1/events") { try await $0.events($1.query) },
    ControlRoute(.get, "hearth/v1/events/*") { api, request in
      try await api.event(api.id(request.captures[0]))
    },
    ControlRoute(.post, "hearth/v1/events/discard") { try await $0.discardAll($1.query) },
    ControlRoute(.post, "hearth/v1/events/*/discard") { api, request in
      try await api.discard(api.id(request.captures[0]))
    },
    ControlRoute(.post, "hearth/v1/events/retry") { try await $0.retryAll($1.query) },
    ControlRoute(.post, "hearth/v1/events/*/retry") { api, request in
      try await api.retry(api.id(request.captures[0]))
    },
    ControlRoute(.get, "hearth/v1/changes") { try await $0.changes($1.query) },
    ControlRoute(.get, "hearth/v1/indexes") { api, request in api.indexes(request.query) },
    ControlRoute(.get, "hearth/v1/rules/decisions") { api, request in
      try .json(encoding: api.ruleDecisions(request.query))
    },
    ControlRoute(.get, "hearth/v1/rules/coverage") { api, request in
      try api.ruleCoverage(request.query)
    },
    ControlRoute(.post, "hearth/v1/settle") { try await $0.settle($1.query) },
    ControlRoute(.get, "hearth/v1/clock") { api, _ in try .json(encoding: api.clock()) },
    ControlRoute(.post, "hearth/v1/clock") { try await $0.advanceClock($1.request) },
    ControlRoute(.get, "hearth/v1/faults") { api, _ in
      try .json(encoding: api.deliveries.faults)
    },
    ControlRoute(.put, "hearth/v1/faults") { try await $0.setFaults($1.request) },
    ControlRoute(.delete, "hearth/v1/faults") { api, _ in
      api.deliveries.faults = nil
      return .json("{}")
    },
    ControlRoute(.post, "hearth/v1/faults/disconnect") { api, _ in try api.disconnectClients() },
  ]

  /// The routes that deploy or run other code, return secrets, or write files.
  private static let commandRoutes: [ControlRoute] = [
    // The export writes to any folder of this machine, and Firebase's tools do not know the token.
    ControlRoute(.post, "_admin/export", for: .thisMachineOrToken) {
      try await $0.transfer.exportForFirebase($1.request)
    },
    ControlRoute(.delete, "hearth/v1/functions") { try await $0.deleteFunctions($1.query) },
    ControlRoute(.post, "hearth/v1/deployments") { try $0.deploy($1.query, $1.client) },
    ControlRoute(.post, "hearth/v1/deployments/rollback") { try await $0.rollBack($1.query) },
    // These routes run code with the functions' secrets, or return the secrets.
    ControlRoute(.get, "hearth/v1/workers/environment", for: .thisMachine) {
      try await $0.workerEnvironment($1.query)
    },
    ControlRoute(.post, "hearth/v1/workers", for: .thisMachine) {
      try await $0.attachWorker($1.request, $1.client)
    },
    ControlRoute(.delete, "hearth/v1/workers/*", for: .thisMachine) {
      try await $0.releaseWorker($1.captures[0])
    },
    ControlRoute(.post, "hearth/v1/export") { try await $0.transfer.export($1.request) },
    ControlRoute(.post, "hearth/v1/import") { try await $0.transfer.import($1.request) },
  ]
}
