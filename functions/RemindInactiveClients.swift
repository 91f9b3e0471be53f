public import FunctionsRuntime
import PsstBackend

extension AppFunctions {
  /// Reminds trainers each morning of clients without a message for some days.
  ///
  /// Each period of silence leads to one reminder, and no model is asked. A failed run is retried
  /// from the beginning and writes no reminder twice.
  public var remindInactiveClients: OnSchedule {
    .init(
      "remindInactiveClients",
      schedule: "0 6 * * *",
      options: .init(timeout: .seconds(1800), retry: true)
    ) { event in
      let report = try await services.inactiveClients.remind(at: event.scheduleTime)
      event.logger.info(
        "Silent clients looked up",
        metadata: [
          "trainers": "\(report.trainers)", "contacts": "\(report.contacts)",
          "silent": "\(report.silent)", "reminded": "\(report.reminded)",
          "failed": "\(report.failed)",
        ]
      )
      if report.failed > 0 {
        throw EventError.retry(after: .zero, "\(report.failed) trainers could not be looked at")
      }
    }
  }
}
