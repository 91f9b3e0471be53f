package import DocumentModel
import Events
import FlowControl
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identity
import InvocationContext
import JSONText
package import Logging
import NIOCore
import StatusCodes
package import TaskQueueModel

/// The REST API of Cloud Tasks, as `firebase-admin` and Google's clients use it.
///
/// Any credentials are accepted. Errors have Google's JSON form.
package struct TaskQueueService: Sendable {
  private let project: String
  private let backend: any TaskQueueBackend
  private let functionURL: @Sendable (_ location: String, _ function: String) -> String
  private let unserved: @Sendable () -> String?
  private let reachesLoopback: Bool
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let loggedProjects = OnceEach()

  /// Creates an endpoint for the queues of a project.
  ///
  /// `functionURL` returns the suite's URL of a function. `unserved` returns the reason why a
  /// deployed queue may be missing; nil if none is. If `reachesLoopback` is true, tasks may be sent
  /// to other servers on this machine. Pass false if other machines can reach this endpoint, so
  /// that it does not expose those servers.
  package init(
    project: String,
    backend: any TaskQueueBackend,
    functionURL: @escaping @Sendable (_ location: String, _ function: String) -> String,
    unserved: @escaping @Sendable () -> String? = { nil },
    reachesLoopback: Bool,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.project = project
    self.backend = backend
    self.functionURL = functionURL
    self.unserved = unserved
    self.reachesLoopback = reachesLoopback
    self.now = now
    self.logger = logger
  }

  /// Returns the response to a request.
  package func respond(to request: Request) async -> Response {
    do {
      let json =
        request.path == "/queueStats"
        ? try await statistics(request) : try await answer(request, TaskRoute(request))
      return .json(ByteBuffer(bytes: json.bytes))
    } catch {
      if !(error is any StatusConvertible), !(error is CancellationError) {
        logger.error("A task request failed", metadata: ["error": "\(error)"])
      }
      return .error(error)
    }
  }

  private func answer(_ request: Request, _ route: TaskRoute) async throws -> JSONValue {
    guard route.project == project else {
      if loggedProjects.isNew(route.project) {
        logger.warning(
          """
          Tasks for project \(route.project); this suite serves \(project). Correct the client's \
          project, or start with --project.
          """
        )
      }
      throw StatusError(
        .notFound,
        "There are no queues of project \(route.project); this suite serves \(project)."
      )
    }
    let scope = Scope(route: route)
    // The connection omits the body of a response to HEAD.
    let method = request.method == .head ? .get : request.method
    switch (method, route.queue, route.tasks, route.verb) {
    case (.get, nil, nil, nil): return try await listQueues(scope)
    case (.get, let id?, nil, nil): return try await show(queue(id, scope), scope)
    case (.post, let id?, nil, nil): return try await show(declared(id, scope), scope)
    case (.post, nil, nil, nil):
      return try await show(declared(try await newQueue(request), scope), scope)
    case (.post, let id?, nil, "pause"?):
      return show(try await backend.setPaused(true, queue: queue(id, scope).id), scope)
    case (.post, let id?, nil, "resume"?):
      return show(try await backend.setPaused(false, queue: queue(id, scope).id), scope)
    case (.post, let id?, nil, "purge"?):
      let queue = try await queue(id, scope)
      try await backend.purge(queue.id)
      return try await show(self.queue(id, scope), scope)
    case (.post, let id?, .all?, nil): return try await create(request, queue(id, scope), scope)
    case (.get, let id?, .all?, nil): return try await listTasks(request, queue(id, scope), scope)
    case (.get, let id?, .one(let task)?, nil):
      let queue = try await queue(id, scope)
      let found = try await found(backend.task(task, in: queue.id), task, queue)
      return show(found, queue, scope, showsBody: try CreateTaskRequest.showsBody(request.view))
    case (.delete, let id?, .one(let task)?, nil):
      let queue = try await queue(id, scope)
      guard try await backend.deleteTask(task, in: queue.id) else { throw gone(task, queue) }
      return [:]
    case (.post, let id?, .one(let task)?, "run"?):
      let queue = try await queue(id, scope)
      let started = try await found(backend.runTask(task, in: queue.id), task, queue)
      return show(started, queue, scope, showsBody: false)
    case (.patch, _?, nil, nil), (.delete, _?, nil, nil):
      throw StatusError(
        .failedPrecondition,
        "A queue belongs to its function: change the options of onTaskDispatched, or delete the "
          + "function, and deploy."
      )
    default:
      throw StatusError(
        .notFound,
        "There is no \(request.method) \(request.path): queues are at "
          + "/v2/projects/\(project)/locations/LOCATION/queues, tasks below their queue."
      )
    }
  }

  // MARK: - Queues

  /// Returns all queues that `isEnough` accepts.
  ///
  /// Throws `UNAVAILABLE` for others while a deployment is not served, because clients take
  /// `NOT_FOUND` and an empty list as final.
  private func knownQueues(_ isEnough: ([TaskQueue]) -> Bool) async throws -> [TaskQueue] {
    // Asked first: once no deployment is unserved, all queues are there.
    let reason = unserved()
    let queues = try await backend.queues()
    if let reason, !isEnough(queues) { throw StatusError(.unavailable, reason) }
    return queues
  }

  /// Returns the queue that a request names.
  ///
  /// Throws `NOT_FOUND` with a list of the existing queues if there is no such queue.
  private func queue(_ id: String, _ scope: Scope) async throws -> TaskQueue {
    let queues = try await knownQueues { $0.contains { $0.id == id } }
    if let queue = queues.first(where: { $0.id == id }) {
      if queue.locations.contains(scope.location) { return queue }
      throw StatusError(
        .notFound,
        "Queue \(id) is not in \(scope.location) but in \(queue.locations.joined(separator: ", "))."
      )
    }
    let names = queues.map(\.id).sorted().prefix(Self.namesMax).joined(separator: ", ")
    throw StatusError(
      .notFound,
      "There is no queue \(id). "
        + (names.isEmpty
          ? "No deployed function takes tasks; declare one with onTaskDispatched."
          : "The deployed functions that take tasks are: \(names).")
    )
  }

  /// Returns the queue that a request asks to create.
  ///
  /// A queue exists once its function is deployed. Throws `FAILED_PRECONDITION` if it is not.
  private func declared(_ id: String, _ scope: Scope) async throws -> TaskQueue {
    do {
      return try await queue(id, scope)
    } catch let error as StatusError where error.statusCode == .notFound {
      throw StatusError(
        .failedPrecondition,
        "A queue is made by deploying a function. \(error.statusMessage)"
      )
    }
  }

  /// Reads the queue's id from the body of Google's `CreateQueue`.
  private func newQueue(_ request: Request) async throws -> String {
    var fields = try TaskFields(try await json(request), at: "")
    let name = try fields.string("name") ?? ""
    return name.split(separator: "/").last.map(String.init) ?? ""
  }

  private func listQueues(_ scope: Scope) async throws -> JSONValue {
    let queues = try await knownQueues { !$0.isEmpty }.filter {
      $0.locations.contains(scope.location)
    }
    return ["queues": .array(queues.map { show($0, scope) })]
  }

  private func show(_ queue: TaskQueue, _ scope: Scope) -> JSONValue {
    TaskResource.json(queue, name: scope.name(of: queue))
  }

  private func statistics(_ request: Request) async throws -> JSONValue {
    guard [.get, .head].contains(request.method) else {
      throw StatusError.invalidArgument("Ask for /queueStats by GET.")
    }
    let statistics = try await backend.taskQueueStatistics()
    var queues: [String: JSONValue] = [:]
    for queue in try await knownQueues({ !$0.isEmpty }) {
      let figures = statistics[queue.id]
      for location in queue.locations {
        queues["queue:\(project)-\(location)-\(queue.id)"] = [
          "tasksCount": JSONValue(figures?.tasksCount ?? 0),
          "concurrentDispatchesCount": JSONValue(figures?.concurrentDispatchesCount ?? 0),
          "executedLastMinuteCount": JSONValue(figures?.executedLastMinuteCount ?? 0),
          "isPaused": .boolean(queue.isPaused),
        ]
      }
    }
    return .object(queues)
  }

  // MARK: - Tasks

  private func create(
    _ request: Request,
    _ queue: TaskQueue,
    _ scope: Scope
  ) async throws -> JSONValue {
    let name = scope.name(of: queue)
    let address = TaskAddress.Queue(
      project: project,
      location: scope.location,
      id: queue.id,
      functionURL: functionURL(scope.location, queue.id),
      reachesLoopback: reachesLoopback
    )
    let json = try await json(request)
    let wanted = try CreateTaskRequest(json, name: name, queue: address, now: now())
    let task: QueuedTask
    do {
      let cause = HTTPField.Name(EventCause.headerName).flatMap { request.headers[$0] }
      let trace = request.headers[.traceParent]
      task = try await EventCause.with(header: CauseSignature.verified(cause), traceParent: trace) {
        try await backend.enqueue(wanted.task, in: queue.id)
      }
    } catch let error as any StatusConvertible where error.statusCode == .alreadyExists {
      throw StatusError(
        .alreadyExists,
        "Queue \(queue.id) has, or had within the last hour, a task \(wanted.task.id ?? ""); an id "
          + "can be used again an hour after its task ran or was deleted."
      )
    }
    let shown = show(task, queue, scope, showsBody: wanted.showsBody)
    guard scope.isEmulatorForm, case .object(var members) = shown else { return shown }
    // Firebase's emulator adds this member, with a slash before the name. Clients rely on both.
    var nested = members
    nested["name"] = .string("/\(name)/tasks/\(task.id)")
    members["task"] = .object(nested)
    return .object(members)
  }

  private func listTasks(
    _ request: Request,
    _ queue: TaskQueue,
    _ scope: Scope
  ) async throws -> JSONValue {
    let showsBody = try CreateTaskRequest.showsBody(request.view)
    let size = try request.query.number("pageSize", in: 0...Int(Int32.max)) ?? 0
    let token = request.query["pageToken"].flatMap { $0.isEmpty ? nil : $0 }
    let page = try await backend.tasks(
      in: queue.id,
      after: token,
      limit: size == 0 ? Self.pageMax : min(size, Self.pageMax),
      withBodies: showsBody
    )
    var reply: [String: JSONValue] = [
      "tasks": .array(page.tasks.map { show($0, queue, scope, showsBody: showsBody) })
    ]
    if page.hasMore, let last = page.tasks.last { reply["nextPageToken"] = .string(last.id) }
    return .object(reply)
  }

  private func show(
    _ task: QueuedTask,
    _ queue: TaskQueue,
    _ scope: Scope,
    showsBody: Bool
  ) -> JSONValue {
    let url =
      switch task.target?.place {
      case nil: functionURL(scope.location, queue.id)
      case .function(let name, "/"): functionURL(scope.location, name)
      case .function(let name, let path): functionURL(scope.location, name) + path
      case .url(let url): url
      }
    return TaskResource.json(
      task,
      name: "\(scope.name(of: queue))/tasks/\(task.id)",
      url: url,
      showsBody: showsBody
    )
  }

  private func found(
    _ task: QueuedTask?,
    _ id: String,
    _ queue: TaskQueue
  ) throws(StatusError) -> QueuedTask {
    guard let task else { throw gone(id, queue) }
    return task
  }

  private func gone(_ id: String, _ queue: TaskQueue) -> StatusError {
    StatusError(
      .notFound,
      "Queue \(queue.id) has no task \(id); it never had one, or the task ran or was deleted."
    )
  }

  // MARK: - Requests

  private func json(_ request: Request) async throws -> JSONValue {
    let body = try await request.wholeBody(upTo: Self.requestBytesMax)
    guard body.readableBytes > 0 else { return [:] }
    do throws(JSONSyntaxError) {
      return try JSONValue.parse(body.readableBytesView, valuesMax: Self.valuesMax)
    } catch {
      throw StatusError.invalidArgument(
        "The request's body is not JSON: \(error.reason) at byte \(error.offset)."
      )
    }
  }

  /// The properties of a request's path that its response needs.
  ///
  /// These are the project, the location and the path's form.
  private struct Scope {
    var project: String
    var location: String
    var isEmulatorForm: Bool

    init(route: TaskRoute) {
      project = route.project
      location = route.location
      isEmulatorForm = route.isEmulatorForm
    }

    func name(of queue: TaskQueue) -> String {
      "projects/\(project)/locations/\(location)/queues/\(queue.id)"
    }
  }

  /// The largest page that Cloud Tasks returns.
  private static let pageMax = 1000
  /// Large enough for a task body of one megabyte in base64 and the other fields.
  private static let requestBytesMax = 2 << 20
  /// The maximum number of values in a request.
  ///
  /// A task has some 30 besides its headers, which are a few dozen in practice. Without a bound, a
  /// body of two megabytes has a hundred thousand, whose tables keep a shared thread for long.
  private static let valuesMax = 1000
  /// The maximum number of queue names in an error message.
  private static let namesMax = 20
}

/// The parts of a path such as `/v2/projects/p/locations/l/queues/q/tasks/t:run`.
private struct TaskRoute {
  var project: String
  var location: String
  var queue: String?
  var tasks: Tasks?
  var verb: String?
  /// True if the path has no leading `/v2/`, as on Firebase's emulator.
  var isEmulatorForm: Bool

  enum Tasks {
    case all
    case one(String)
  }

  init(_ request: Request) throws(StatusError) {
    var path = request.pathSegments ?? []
    isEmulatorForm = !["v2", "v2beta3", "v2beta2"].contains(path.first)
    if !isEmulatorForm { path.removeFirst() }
    if let last = path.last, let colon = last.lastIndex(of: ":") {
      verb = String(last[last.index(after: colon)...])
      path[path.count - 1] = String(last[..<colon])
    }
    guard (5...8).contains(path.count), path[0] == "projects", path[2] == "locations",
      path[4] == "queues", path.count < 7 || path[6] == "tasks",
      path.allSatisfy({ !$0.isEmpty })
    else {
      throw StatusError(
        .notFound,
        "There is no \(request.method) \(request.path.prefix(200)): a queue's tasks are at "
          + "/v2/projects/PROJECT/locations/LOCATION/queues/QUEUE/tasks."
      )
    }
    project = path[1]
    location = path[3]
    queue = path.count > 5 ? path[5] : nil
    tasks = path.count == 8 ? .one(path[7]) : path.count == 7 ? .all : nil
  }
}

extension Request {
  /// The name or number of the view, which selects how much of a task the response contains.
  fileprivate var view: String? { query["responseView"] }
}
