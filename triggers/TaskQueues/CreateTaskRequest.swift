import DocumentModel
import JSONText
import Manifests
import StatusCodes
import TaskQueueModel

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A client's request to create a task: `{"task": {…}, "responseView": …}`.
struct CreateTaskRequest {
  var task: NewTask
  /// Indicates whether the response includes the body of the task.
  var showsBody: Bool

  /// Reads and validates a request.
  ///
  /// `name` is the full name of the queue that receives the request.
  init(
    _ json: JSONValue,
    name queueName: String,
    queue: TaskAddress.Queue,
    now: Timestamp
  ) throws(StatusError) {
    var request = try TaskFields(json, at: "")
    showsBody = try Self.showsBody(try request.enumeration("responseView", Self.views))
    guard var fields = try request.object("task") else {
      throw .invalidArgument("The request has no task; send {\"task\": {\"httpRequest\": …}}.")
    }
    // The path names the parent. Clients that repeat it in the body mean the same queue.
    request.ignore("parent")
    try request.finish()

    let id = try Self.id(try fields.string("name"), queue: queueName)
    let scheduleTime = try Self.scheduleTime(try fields.string("scheduleTime"), now: now)
    let deadline = try Self.deadline(try fields.string("dispatchDeadline"))
    guard var http = try fields.object("httpRequest") else {
      throw .invalidArgument(
        "task.httpRequest is missing; tasks for App Engine and pull queues are not run here."
      )
    }
    // Only the service sets these fields, but a client that copies a task may send them.
    fields.ignore(
      "createTime",
      "dispatchCount",
      "responseCount",
      "firstAttempt",
      "lastAttempt",
      "view"
    )
    try fields.finish()
    task = NewTask(
      id: id,
      body: try Self.body(try http.string("body")),
      headers: try Self.headers(try http.strings("headers")),
      scheduleTime: scheduleTime,
      dispatchDeadline: deadline,
      target: nil
    )
    var method = try http.enumeration("httpMethod", Self.methods) ?? "POST"
    if method == "HTTP_METHOD_UNSPECIFIED" { method = "POST" }
    task.target = try TaskAddress(try http.string("url"), method: method, of: queue).target
    guard task.body.isEmpty || Self.methodsWithBody.contains(method) else {
      throw .invalidArgument(
        "task.httpRequest has a body, and httpMethod \(method); only POST, PUT and PATCH have one."
      )
    }
    // No server on this machine checks a task's token.
    http.ignore("oidcToken", "oauthToken")
    try http.finish()
  }

  /// The names of Cloud Tasks' `HttpMethod` and `Task.View`, in the order of their enum numbers.
  private static let methods = [
    "HTTP_METHOD_UNSPECIFIED", "POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS",
  ]
  private static let methodsWithBody = ["POST", "PUT", "PATCH"]
  private static let views = ["VIEW_UNSPECIFIED", "BASIC", "FULL"]

  /// Reads a view by name or, from a query, by number.
  ///
  /// `BASIC` omits the bodies of tasks, and `FULL` includes them.
  static func showsBody(_ view: String?) throws(StatusError) -> Bool {
    let number = view.flatMap { Int($0) }
    switch number.flatMap({ views.indices.contains($0) ? views[$0] : nil }) ?? view {
    case nil, "BASIC", "VIEW_UNSPECIFIED": return false
    case "FULL": return true
    case .some(let view):
      throw .invalidArgument("responseView is \"\(view)\"; give BASIC or FULL.")
    }
  }

  private static func id(_ name: String?, queue: String) throws(StatusError) -> String? {
    guard let name, !name.isEmpty else { return nil }
    let prefix = queue + "/tasks/"
    guard name.hasPrefix(prefix) else {
      throw .invalidArgument(
        "task.name is \"\(name.prefix(600))\"; a task of this queue is named \(prefix)TASK_ID."
      )
    }
    let id = String(name.dropFirst(prefix.count))
    let most = FunctionLimits.taskIDBytesMax
    guard (1...most).contains(id.utf8.count), id.utf8.allSatisfy(isIDByte) else {
      throw .invalidArgument(
        "The task's id \"\(id.prefix(600))\" must be 1 to \(most) letters, digits, hyphens and "
          + "underscores."
      )
    }
    return id
  }

  private static func isIDByte(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
      || byte == 45 || byte == 95
  }

  private static func scheduleTime(
    _ text: String?,
    now: Timestamp
  ) throws(StatusError) -> Timestamp? {
    guard let text else { return nil }
    guard let time = Timestamp(text) else {
      throw .invalidArgument(
        "task.scheduleTime is \"\(text.prefix(100))\"; write RFC 3339, such as "
          + "2026-11-21T10:00:00Z."
      )
    }
    try NewTask.check(scheduleTime: time, now: now)
    return time
  }

  private static func deadline(_ text: String?) throws(StatusError) -> Duration {
    guard let text else { return NewTask.dispatchDeadlineDefault }
    guard text.hasSuffix("s"), text.utf8.dropLast().allSatisfy({ $0 == 46 || isDigit($0) }),
      let seconds = Double(text.dropLast())
    else {
      throw .invalidArgument(
        "task.dispatchDeadline is \"\(text.prefix(100))\"; write seconds, such as 60s."
      )
    }
    let allowed = FunctionLimits.attemptSeconds
    guard (Double(allowed.lowerBound)...Double(allowed.upperBound)).contains(seconds) else {
      throw .invalidArgument(
        "task.dispatchDeadline is \(text.prefix(100)); give \(allowed.lowerBound)s to "
          + "\(allowed.upperBound)s."
      )
    }
    return .milliseconds(Int64(seconds * 1000))
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  private static func body(_ text: String?) throws(StatusError) -> [UInt8] {
    guard let text else { return [] }
    var standard = text.replacing("-", with: "+").replacing("_", with: "/")
    while standard.utf8.count % 4 != 0 { standard += "=" }
    guard let body = Data(base64Encoded: standard) else {
      throw .invalidArgument("task.httpRequest.body is not base64.")
    }
    guard body.count <= bodyBytesMax else {
      throw .invalidArgument(
        "The task's body has \(body.count) bytes; a task has at most \(bodyBytesMax)."
      )
    }
    return Array(body)
  }

  /// Returns the sender's headers without those that Cloud Tasks sets itself or ignores.
  private static func headers(_ sent: [String: String]) throws(StatusError) -> [String: String] {
    var bytes = 0
    var headers: [String: String] = [:]
    for (name, value) in sent {
      bytes += name.utf8.count + value.utf8.count
      guard bytes <= headerBytesMax else {
        throw .invalidArgument(
          "task.httpRequest.headers have more than the \(headerBytesMax) bytes that they may have."
        )
      }
      guard !name.isEmpty, name.utf8.allSatisfy({ isIDByte($0) || tokenBytes.contains($0) }),
        value.utf8.allSatisfy({ $0 >= 32 || $0 == 9 })
      else {
        throw .invalidArgument(
          "task.httpRequest.headers has \"\(name.prefix(100))\", whose name or value no HTTP "
            + "header can have."
        )
      }
      let lowercased = name.lowercased()
      guard !ownHeaders.contains(lowercased), !ownPrefixes.contains(where: lowercased.hasPrefix)
      else { continue }
      headers[name] = value
    }
    return headers
  }

  private static let tokenBytes = Set("!#$%&'*+.^`|~".utf8)
  private static let ownHeaders: Set = [
    "host", "content-length", "user-agent", "connection", "transfer-encoding", "expect", "te",
    "upgrade",
  ]
  private static let ownPrefixes = [
    "x-cloudtasks-", "x-google-", "x-appengine-", "x-hearth-", "x-cloudscheduler",
  ]

  // The limits of Cloud Tasks.
  private static let aheadMax: Int64 = 30 * 86_400 * 1_000_000
  private static let bodyBytesMax = 1 << 20
  private static let headerBytesMax = 80 << 10
}
