import HTTPTypes
import Invocation
import NIOCore

/// A function that runs by the clock.
///
/// ```swift
/// var nightly: OnSchedule {
///   .init("nightly", schedule: "0 3 * * *", timeZone: "Europe/Berlin") { event in
///     try await report.write(for: event.scheduleTime)
///   }
/// }
/// ```
///
/// A run that fails is tried again only if the option `retry` says so.
public struct OnSchedule: CloudFunction {
  private let name: String
  private let schedule: String
  private let timeZone: String?
  private let options: FunctionOptions
  private let handler: @Sendable (ScheduleEvent) async throws -> Void

  /// A function on a schedule.
  ///
  /// - Parameters:
  ///   - name: The name by which the function is deployed.
  ///   - schedule: Unix cron (`0 3 * * *`) or App Engine's words (`every 5 minutes`).
  ///   - timeZone: The zone of the schedule's times, a name of the IANA database such as
  ///     `Europe/Berlin`; UTC without one.
  ///   - options: How the function is run.
  ///   - handler: What it does.
  public init(
    _ name: String,
    schedule: String,
    timeZone: String? = nil,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (ScheduleEvent) async throws -> Void
  ) {
    self.name = name
    self.schedule = schedule
    self.timeZone = timeZone
    self.options = options.values
    self.handler = handler
  }

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition {
    let trigger = FunctionDefinition.Trigger.schedule(schedule, timeZone: timeZone)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventExchange(scope: scope).reply {
        try ScheduleEvent(request, scope)
      } preparing: { event in
        { try await handler(event) }
      }
    }
  }

  /// Runs the handler; throws what it throws.
  public func run(_ event: ScheduleEvent) async throws {
    try await handler(event)
  }
}

/// One run of a function on a schedule.
public struct ScheduleEvent: Sendable {
  /// The time for which the run was planned; the same on each attempt.
  public var scheduleTime: Timestamp
  /// The name of the schedule's job; nil when unknown.
  public var jobName: String?
  /// The number of the attempt at this run, from 1.
  public var attempt: Int
  /// The id that follows this invocation through the logs of server and worker.
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
