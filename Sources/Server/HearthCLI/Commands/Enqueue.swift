import ArgumentParser
import DocumentModel
import EmulatorSuite
import Foundation
import JSONText
import OutboundHTTP

/// `hearth enqueue`: gives a task to a function's queue.
struct Enqueue: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Enqueue a task for a function that takes tasks.",
    usage: "hearth enqueue <queue> [--data <json>] [--in <duration> | --at <time>] [<options>]",
    discussion: """
      As the enqueue of firebase-admin does: the task goes through the queue with its limits and \
      retries, and the function gets the data. The queue has the function's name. Times are the \
      suite's, which `hearth clock advance` lets jump ahead.

        hearth enqueue remind --data '{"text": "Stretch"}'
        hearth enqueue remind --data @reminder.json --in 5m
        hearth enqueue remind --data '{"text": "Stretch"}' --at 2026-12-01T08:00:00Z
        hearth enqueue remind --data '{"text": "Stretch"}' --id tina-1     only once
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: "The queue, which is the function's name.")
  var queue: String

  @Option(
    name: .customLong("data"),
    // JSON may begin with a minus sign.
    parsing: .unconditional,
    help: ArgumentHelp("The data, as JSON, @FILE or - for stdin.", valueName: "json")
  )
  var payload = "null"

  @Option(
    name: .customLong("in"),
    help: ArgumentHelp("Run it this much later, such as 30s, 5m, 2h or 1d.", valueName: "duration")
  )
  var delay: String?

  @Option(
    name: .customLong("at"),
    help: ArgumentHelp("Run it at this time, such as 2026-12-01T08:00:00Z.", valueName: "time")
  )
  var time: String?

  @Option(
    name: .customLong("id"),
    help: ArgumentHelp(
      "The task's id, which a second task cannot have; by default a random one.",
      valueName: "id"
    )
  )
  var task: String?

  @Flag(help: "Print the task as JSON, in the form of Cloud Tasks.")
  var json = false

  func validate() throws {
    guard delay == nil || time == nil else { throw ValidationError("Give --in or --at, not both.") }
    if let delay, let seconds = TimeSpan.seconds(delay), seconds > Self.delaySecondsMax {
      throw ValidationError("--in is \(delay); a task is due within 30 days.")
    }
    if let delay, TimeSpan.seconds(delay) == nil {
      throw ValidationError("--in is \"\(delay)\"; give a duration such as 30s, 5m, 2h or 1d.")
    }
    if let time, Timestamp(time) == nil {
      throw ValidationError("--at is \"\(time)\"; give a time such as 2026-12-01T08:00:00Z.")
    }
  }

  /// The maximum delay of a task, as in Cloud Tasks.
  private static let delaySecondsMax = 30.0 * 86_400

  func run() async throws {
    let data = try JSONInput.read(payload, option: "--data")
    let client = try await suite.connect()
    let description = try await client.get("/hearth/v1/suite", as: SuiteDescription.self)
    guard let tasks = description.services["tasks"] else {
      throw CommandError("The suite has no task queues; start it again with this version.")
    }
    try await checkFunction(client)
    let name =
      "projects/\(description.project)/locations/"
      + "\(try await location(at: tasks, of: description.project))/queues/\(queue)"
    var request = OutboundRequest(
      method: "POST",
      url: "http://\(tasks.host):\(tasks.port)/v2/\(name)/tasks",
      headers: ["content-type": "application/json"]
    )
    let body: JSONValue = ["task": .object(try await newTask(data, queue: name, client))]
    request.body = body.bytes
    let response = try await OutboundClient().send(request)
    guard response.isSuccess else { throw ControlClient.failure(response.status, response.body) }
    guard !json else { return Terminal.print(json: response.body) }
    let created = try Created(decodingJSON: response.body)
    let id = created.name.split(separator: "/").last.map(String.init) ?? created.name
    let due = delay == nil && time == nil ? "" : ", due \(created.scheduleTime)"
    let isNull = String(decoding: data, as: UTF8.self) == "null"
    let content = isNull ? " with null data (--data gives others)" : ""
    Terminal.printLine(
      "Enqueued task \(id) for \(queue)\(content)\(due); "
        + "`hearth events list --function \(queue)` shows it"
    )
  }

  private struct Created: Decodable {
    var name: String
    var scheduleTime: String
  }

  /// Returns the task to create, in the form of Cloud Tasks.
  private func newTask(
    _ data: [UInt8],
    queue name: String,
    _ client: ControlClient
  ) async throws -> [String: JSONValue] {
    let payload = Data(Array(#"{"data":"#.utf8) + data + Array("}".utf8))
    var task: [String: JSONValue] = [
      "httpRequest": [
        "headers": ["Content-Type": "application/json"],
        "body": .string(payload.base64EncodedString()),
      ]
    ]
    if let id = self.task { task["name"] = .string("\(name)/tasks/\(id)") }
    if let delay, let seconds = TimeSpan.seconds(delay) {
      let now = try await client.get("/hearth/v1/clock", as: ClockDescription.self).now
      guard let now = Timestamp(now) else { throw CommandError("The suite has no time: \(now)") }
      let due = Timestamp(microseconds: now.microseconds + Int64(seconds * 1_000_000))
      task["scheduleTime"] = .string(due.description)
    }
    if let time { task["scheduleTime"] = .string(time) }
    return task
  }

  private func checkFunction(_ client: ControlClient) async throws {
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    guard let function = functions.first(where: { $0.name == queue }) else {
      throw FunctionNames(functions).unknown(queue, kind: .task)
    }
    guard function.kind == .task else {
      throw CommandError("\(queue) takes no tasks: \(Call.invocationHint(function))")
    }
  }

  /// Returns the location of the queue, from the statistics of the queues.
  ///
  /// The names there are `queue:PROJECT-LOCATION-QUEUE`.
  private func location(at tasks: ServiceAddress, of project: String) async throws -> String {
    let response = try await OutboundClient().send(
      OutboundRequest(url: "http://\(tasks.host):\(tasks.port)/queueStats")
    )
    guard response.isSuccess else { throw ControlClient.failure(response.status, response.body) }
    struct Figures: Decodable {}
    let queues = try [String: Figures](decodingJSON: response.body)
    let (start, end) = ("queue:\(project)-", "-\(queue)")
    let locations = queues.keys.filter { $0.hasPrefix(start) && $0.hasSuffix(end) }
      .map { $0.dropFirst(start.count).dropLast(end.count) }
    // The name of another queue may end alike; its location then seems longer.
    guard let location = locations.min(by: { ($0.count, $0) < ($1.count, $1) }) else {
      throw CommandError(
        "The suite has no queue \(queue); look again when the deployment has ended."
      )
    }
    return String(location)
  }
}
