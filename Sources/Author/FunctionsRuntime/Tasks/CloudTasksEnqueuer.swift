package import DocumentModel
package import GoogleAccess
import InvocationContext
package import OutboundHTTP
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A client of the REST API of Cloud Tasks or of its emulator, comparable to `firebase-admin`.
package struct CloudTasksEnqueuer: TaskEnqueuer {
  private let endpoint: String
  private let isEmulated: Bool
  private let project: String?
  private let tokens: (any AccessTokenSource)?
  private let http: any HTTPTransport
  private let now: @Sendable () -> Timestamp

  /// Creates a client from `CLOUD_TASKS_EMULATOR_HOST` and the project variables of `environment`.
  ///
  /// Without an emulator the tasks go to Google. They are authorized with `tokens`, or else with
  /// the credentials that the environment names. Functions that run in an emulator use no
  /// credentials of the environment, so their tasks never go to Google. A missing variable throws
  /// with the first task instead of here, because most functions enqueue no tasks.
  package init(
    environment: [String: String],
    tokens: (any AccessTokenSource)? = nil,
    http: (any HTTPTransport)? = nil,
    now: @escaping @Sendable () -> Timestamp = { FunctionClock.now }
  ) {
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    if let host = value("CLOUD_TASKS_EMULATOR_HOST") {
      endpoint = host.contains("://") ? host : "http://\(host)"
      isEmulated = true
    } else {
      endpoint = "https://cloudtasks.googleapis.com/v2"
      isEmulated = false
    }
    project = value("GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT")
    let http = http ?? OutboundClient(configuration: .init(environment: environment))
    let source =
      environment["FUNCTIONS_EMULATOR"] == "true"
      ? nil : CredentialsSource(environment: environment)
    self.tokens = tokens ?? source.map { GoogleCredentials(source: $0, http: http) }
    self.http = http
    self.now = now
  }

  package func enqueue(_ task: OutgoingTask) async throws -> String {
    let queue = try path(of: task.queue)
    var fields: MapValue = [:]
    if let id = task.id {
      fields["name"] = .string((queue + ["tasks", id]).joined(separator: "/"))
    }
    switch task.time {
    case .after(let delay):
      if delay > .zero { fields["scheduleTime"] = .string(later(by: delay).description) }
    case .at(let time): fields["scheduleTime"] = .string(time.description)
    }
    if let deadline = task.dispatchDeadline {
      fields["dispatchDeadline"] = .string("\(deadline.wholeSeconds)s")
    }
    fields["httpRequest"] = .map([
      "url": .string(isEmulated ? "" : url(of: task.queue, queue)),
      "body": .string(Data(task.body).base64EncodedString()),
      "headers": .map(["Content-Type": .string("application/json")]),
      "oidcToken": .map(["serviceAccountEmail": .string(try await serviceAccount())]),
    ])
    let body = try JSONWriter.write(.map(["task": .map(fields)]))
    let reply = try await send("POST", queue + ["tasks"], body, describing: task.id)
    // A response without a name is not a failure. The task exists, and only a generated id is
    // unknown.
    guard case .map(let created)? = try? JSONReader.read(reply),
      case .string(let name)? = created["name"], let id = name.split(separator: "/").last
    else { return task.id ?? "" }
    return String(id)
  }

  package func delete(id: String, from queue: TaskQueueName) async throws {
    _ = try await send("DELETE", try path(of: queue) + ["tasks", id], [], describing: id)
  }

  // MARK: - Parts of a request

  private func path(of queue: TaskQueueName) throws -> [String] {
    guard let project else {
      throw TaskQueueError(
        .failedPrecondition,
        "GCLOUD_PROJECT is not set; set it to the project's id, such as demo-psst."
      )
    }
    return ["projects", project, "locations", queue.region, "queues", queue.function]
  }

  /// Returns the URL at which Cloud Functions serves the function of a queue.
  private func url(of queue: TaskQueueName, _ path: [String]) -> String {
    "https://\(queue.region)-\(path[1]).cloudfunctions.net/\(queue.function)"
  }

  private func later(by delay: Duration) -> Timestamp {
    let micros = delay / .microseconds(1)
    // The limit of ten years keeps the sum within the range of a timestamp. Cloud Tasks accepts
    // less.
    return Timestamp(microseconds: now().microseconds + Int64(min(micros, 3.2e14)))
  }

  private func serviceAccount() async throws -> String {
    guard !isEmulated else { return Self.emulatedAccount }
    return try await serviceAccountEmail()
  }

  private func serviceAccountEmail() async throws -> String {
    do {
      return try await credentials().serviceAccountEmail()
    } catch let error as any StatusConvertible {
      throw TaskQueueError(error.statusCode, error.statusMessage)
    }
  }

  private func accessToken() async throws -> String {
    do {
      return try await credentials().token()
    } catch let error as any StatusConvertible {
      throw TaskQueueError(error.statusCode, error.statusMessage)
    }
  }

  private func credentials() throws -> any AccessTokenSource {
    guard let tokens else {
      throw TaskQueueError(
        .failedPrecondition,
        "CLOUD_TASKS_EMULATOR_HOST is not set, and there are no credentials for Cloud Tasks; set "
          + "it to the emulator's address, such as 127.0.0.1:9499, or "
          + "GOOGLE_APPLICATION_CREDENTIALS to the path of a key file."
      )
    }
    return tokens
  }

  private func send(
    _ method: String,
    _ path: [String],
    _ body: [UInt8],
    describing id: String?
  ) async throws -> [UInt8] {
    var request = OutboundRequest(
      method: method,
      url: OutboundURL.make(base: endpoint, path: path),
      body: body
    )
    request.headers["Authorization"] =
      "Bearer " + (isEmulated ? "owner" : try await accessToken())
    if !body.isEmpty { request.headers["Content-Type"] = "application/json" }
    request.headers[EventCause.headerName] = EventCause.current
    let response: OutboundResponse
    do {
      response = try await http.send(request)
    } catch let error as OutboundHTTPError {
      throw TaskQueueError(error.statusCode, error.statusMessage)
    }
    guard !response.isSuccess else { return response.body }
    if response.status == 409 {
      throw TaskQueueError(
        .alreadyExists,
        "A task with the id \(id ?? "given") is or was in the queue; choose another id."
      )
    }
    throw Self.error(of: response)
  }

  /// Returns the error in a response of Google's form, or an error for the status of any other.
  private static func error(of response: OutboundResponse) -> TaskQueueError {
    var code: StatusCode =
      StatusCode.allCases.first { $0.httpStatus == response.status && $0 != .ok } ?? .unknown
    var message = "The queue returned \(response.status)."
    // A body in another form adds no information to the status.
    if case .map(let body)? = try? JSONReader.read(response.body),
      case .map(let error)? = body["error"]
    {
      if case .string(let name)? = error["status"] { code = StatusCode(name: name) ?? code }
      if case .string(let text)? = error["message"] { message = text }
    }
    return TaskQueueError(code, message)
  }

  // The account that firebase-admin sends to emulators.
  private static let emulatedAccount = "emulated-service-acct@email.com"
}

extension TaskQueueing {
  /// The task queueing of the current invocation, or of the process outside invocations.
  static var here: TaskQueueing { current ?? ofProcess }

  // Scripts that fill a queue do not run an app, so the environment is read here for them.
  private static let ofProcess = TaskQueueing(
    enqueuer: CloudTasksEnqueuer(environment: ProcessInfo.processInfo.environment)
  )
}
