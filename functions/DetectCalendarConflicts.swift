public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Keeps one reminder for each pair of overlapping events in a trainer's calendar.
  ///
  /// Acts on the current calendar: when two events no longer overlap, their reminder is deleted.
  public var detectCalendarConflicts: OnDocumentWritten<Lenient<CalendarEvent>> {
    .init(
      "detectCalendarConflicts",
      at: "calendar/{trainerId}/events/{eventId}",
      options: .init(retry: true)
    ) { event in
      let trainerID = try event.params.trainerId
      let eventID = try event.params.eventId
      var logger = event.logger
      logger[metadataKey: "trainer.id"] = "\(trainerID)"
      logger[metadataKey: "calendar.event.id"] = "\(eventID)"
      let report = try await sortingFailures(logger) {
        try await services.calendarConflicts.check(eventID, of: trainerID)
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
