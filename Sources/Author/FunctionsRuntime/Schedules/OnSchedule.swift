import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore

/// A function that runs on a schedule.
///
/// ```swift
/// var nightly: OnSchedule {
///   .init("nightly", schedule: "0 3 * * *", timeZone: "Europe/Berlin") { event in
///     try await report.write(for: event.scheduleTime)
///   }
/// }
/// ```
///
/// A failed run is retried only if the option `retry` allows it.
public struct OnSchedule: CloudFunction {
  private let name: String
  private let schedule: String
  private let timeZone: String?
  private let options: FunctionOptions
  private let handler: @Sendable (ScheduleEvent) async throws -> Void

  /// Creates a function that runs on a schedule.
  ///
  /// - Parameters:
  ///   - name: The name under which the function is deployed.
  ///   - schedule: The schedule in Unix cron syntax (`0 3 * * *`) or in App Engine syntax (`every 5
  ///     minutes`).
  ///   - timeZone: The time zone of the schedule, a name of the IANA database such as
  ///     `Europe/Berlin`; UTC by default.
  ///   - options: The limits, secrets and other settings with which the function runs.
  ///   - handler: The code that runs at each time of the schedule.
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

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    let trigger = FunctionDefinition.Trigger.schedule(schedule, timeZone: timeZone)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventInvocation(scope: scope).reply {
        try ScheduleEvent(request, scope)
      } preparing: { event in
        { try await handler(event) }
      }
    }
  }

  /// Runs the handler and rethrows its error.
  public func run(_ event: ScheduleEvent) async throws {
    try await handler(event)
  }
}

/// One run of a scheduled function.
public struct ScheduleEvent: Sendable {
  /// The planned time of the run, which is the same in each attempt.
  public var scheduleTime: Timestamp
  /// The name of the Cloud Scheduler job; nil if unknown.
  public var jobName: String?
  /// The number of this attempt at the run, starting at 1.
  public var attempt: Int
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates a run for a test.
  public init(
    scheduleTime: any PointInTime,
    jobName: String? = nil,
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "schedule")
  ) {
    self.scheduleTime = scheduleTime.timestamp
    self.jobName = jobName
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }
}

extension ScheduleEvent {
  /// Reads the headers of Cloud Scheduler's request and ignores its body.
  fileprivate init(_ request: InvocationRequest, _ scope: FunctionScope) throws {
    let fields = request.head.headerFields
    guard request.head.method == .post else {
      throw EventRefusedError("A scheduled run comes by POST, not \(request.head.method.rawValue).")
    }
    guard let time = fields[Self.timeHeader] else {
      throw EventRefusedError(
        "The header \(Self.timeHeader) is missing, which every scheduled run has."
      )
    }
    guard let scheduleTime = Timestamp(time) else {
      throw EventRefusedError(
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
