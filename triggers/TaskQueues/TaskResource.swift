import JSONText
import Manifests
import StatusCodes
import Events
import DocumentModel
import TaskQueueModel

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The JSON encoding of tasks and queues as resources of Cloud Tasks.
enum TaskResource {
  /// Returns the `Task` resource; it includes the body only if `showsBody` is true.
  static func json(
    _ task: QueuedTask,
    name: String,
    url: String,
    showsBody: Bool
  ) -> JSONValue {
    var http: [String: JSONValue] = [
      "url": .string(url), "httpMethod": .string(task.target?.method ?? "POST"),
      "headers": .object(task.headers.mapValues(JSONValue.string)),
    ]
    if showsBody { http["body"] = .string(Data(task.body).base64EncodedString()) }
    var members: [String: JSONValue] = [
      "name": .string(name),
      "httpRequest": .object(http),
      "scheduleTime": .string("\(task.scheduleTime)"),
      "createTime": .string("\(task.createTime)"),
      "dispatchDeadline": .string(seconds(task.dispatchDeadline)),
      "dispatchCount": JSONValue(task.dispatchCount),
      "responseCount": JSONValue(task.responseCount),
      "view": showsBody ? "FULL" : "BASIC",
    ]
    if let attempt = task.firstAttempt { members["firstAttempt"] = json(attempt, isFull: false) }
    if let attempt = task.lastAttempt { members["lastAttempt"] = json(attempt, isFull: true) }
    return .object(members)
  }

  /// Encodes one attempt.
  ///
  /// The first attempt of a task contains only its dispatch time, as in production.
  private static func json(_ attempt: QueuedTask.Attempt, isFull: Bool) -> JSONValue {
    var members: [String: JSONValue] = [:]
    if let time = attempt.dispatchTime { members["dispatchTime"] = .string("\(time)") }
    guard isFull else { return .object(members) }
    members["scheduleTime"] = .string("\(attempt.scheduleTime)")
    if let time = attempt.responseTime { members["responseTime"] = .string("\(time)") }
    if let code = attempt.code {
      members["responseStatus"] = [
        "code": JSONValue(code.rawValue),
        "message": .string("\(code.name)(\(code.rawValue)): HTTP status code \(code.httpStatus)"),
      ]
    }
    return .object(members)
  }

  /// Returns the `Queue` resource.
  ///
  /// Settings that a function does not declare have the defaults for functions.
  static func json(_ queue: TaskQueue, name: String) -> JSONValue {
    let rates = queue.rateLimits
    let retry = queue.retryConfig
    var retryConfig: [String: JSONValue] = [
      "maxAttempts": JSONValue(retry.maxAttempts ?? 3),
      "minBackoff": .string(seconds(retry.minBackoffSeconds ?? 0.1)),
      "maxBackoff": .string(seconds(retry.maxBackoffSeconds ?? 3600)),
      "maxDoublings": JSONValue(retry.maxDoublings ?? 16),
    ]
    if let limit = retry.maxRetrySeconds {
      retryConfig["maxRetryDuration"] = .string(seconds(limit))
    }
    let perSecond = rates.maxDispatchesPerSecond ?? Double(FunctionLimits.tasksPerSecondMax)
    return [
      "name": .string(name),
      "state": queue.isPaused ? "PAUSED" : "RUNNING",
      "rateLimits": [
        "maxDispatchesPerSecond": .number(perSecond),
        "maxBurstSize": .number((perSecond / 5).rounded(.up)),
        "maxConcurrentDispatches": JSONValue(
          rates.maxConcurrentDispatches ?? FunctionLimits.concurrentTasksDefault
        ),
      ],
      "retryConfig": .object(retryConfig),
    ]
  }

  private static func seconds(_ duration: Duration) -> String {
    seconds(duration / .seconds(1))
  }

  private static func seconds(_ seconds: Double) -> String {
    Int(exactly: seconds).map { "\($0)s" } ?? "\(seconds)s"
  }
}
