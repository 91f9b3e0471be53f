public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Keeps one reminder for each pair of overlapping events in a trainer's calendar.
  ///
  /// Acts on the current calendar: when two events no longer overlap, their reminder is deleted.
  public var detectCalendarConflicts: OnDocumentWritten<Lenient<CalendarEvent>> {
    .init(
      "detectCalendarConflicts",
      path: CalendarEventPath.self,
      options: .init(retry: true)
    ) { event, path in
      var logger = event.logger
      logger[metadataKey: "trainer.id"] = "\(path.trainerID)"
      logger[metadataKey: "calendar.event.id"] = "\(path.eventID)"
      let report = try await sortingFailures(logger) {
        try await services.calendarConflicts.check(path.eventID, of: path.trainerID)
      }
      logger.info(
        "Calendar event compared",
        metadata: [
          "conflicts": "\(report.conflicts)", "reminders.written": "\(report.written)",
          "reminders.withdrawn": "\(report.withdrawn)",
        ]
      )
    }
  }
}

/// The path of an event in a trainer's calendar.
private struct CalendarEventPath: DocumentPath {
  var trainerID = ""
  var eventID = ""

  static let pattern: Pattern = "calendar/\(\.trainerID)/events/\(\.eventID)"
}
