import HTTPTypes
import Invocation
import NIOCore

/// Declares a function that runs by the clock.
///
/// `schedule` is unix cron (`0 3 * * *`) or App Engine's words (`every 5 minutes`), read in
/// `timeZone`, a name of the IANA database such as `Europe/Berlin`; UTC without one. A run that
/// fails is tried again only where the option `retry` says so.
public func onSchedule(
  _ name: String,
  _ schedule: String,
  timeZone: String? = nil,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (ScheduleEvent) async throws -> Void
) -> some CloudFunction<ScheduleEvent, Void> {
  ScheduleFunction(
    name: name,
    schedule: schedule,
    timeZone: timeZone,
    options: options,
    handler: handler
  )
}

/// One run of a function on a schedule.
public struct ScheduleEvent: Sendable {
  /// The time for which the run was planned; the same on each attempt.
  public var scheduleTime: Timestamp
  /// The name of the schedule's job; nil when nothing tells it.
  public var jobName: String?
  /// Counts the attempts at this run, from 1.
  public var attempt: Int
  /// Follows this invocation through the logs of server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A run as a test makes one.
  public init(
    scheduleTime: Timestamp,
    jobName: String? = nil,
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "schedule")
  ) {
    self.scheduleTime = scheduleTime
    self.jobName = jobName
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }
}

struct ScheduleFunction: CloudFunction {
  let name: String
  let schedule: String
  let timeZone: String?
  let options: FunctionOptions
  let handler: @Sendable (ScheduleEvent) async throws -> Void

  var definition: FunctionDefinition {
    let trigger = FunctionDefinition.Trigger.schedule(schedule, timeZone: timeZone)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventExchange(scope: scope).reply {
        try ScheduleEvent(request, scope)
      } preparing: { event in
        { try await handler(event) }
      }
    }
  }

  func callAsFunction(_ input: ScheduleEvent) async throws {
    try await handler(input)
  }
}

extension ScheduleEvent {
  /// Reads Cloud Scheduler's request, whose body does not matter.
  fileprivate init(_ request: InvocationRequest, _ scope: FunctionScope) throws {
    let fields = request.head.headerFields
    guard request.head.method == .post else {
      throw EventRefusal("A scheduled run comes by POST, not \(request.head.method.rawValue).")
    }
    guard let time = fields[Self.timeHeader] else {
      throw EventRefusal("The header \(Self.timeHeader) is missing, which every scheduled run has.")
    }
    guard let scheduleTime = Timestamp(time) else {
      throw EventRefusal(
        "The header \(Self.timeHeader) is \(time), which is not of the form of RFC 3339."
      )
    }
    self.init(
      scheduleTime: scheduleTime,
      jobName: fields[Self.jobHeader],
      attempt: request.attempt,
      invocationID: request.id,
      logger: scope.logger
    )
  }

  private static let timeHeader = fieldName("x-cloudscheduler-scheduletime")
  private static let jobHeader = fieldName("x-cloudscheduler-jobname")
}
