import FirestoreClient
import Logging
import PsstModels
import PsstServices

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A service that keeps one reminder for each pair of overlapping events of a trainer.
///
/// The stored state depends only on the current events. The same events therefore lead to the same
/// reminders, regardless of the order and the repetition of their changes. A reminder's id is
/// derived from both events and their times, so a reminder that the trainer completed or deleted
/// does not come back. When an event is moved, cancelled or deleted, the reminder of the former
/// overlap is deleted.
public struct CalendarConflicts: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader
  private let now: @Sendable () -> Date

  /// The maximum number of events that one event is compared with.
  ///
  /// A trainer with more overlapping events knows of the conflict.
  private static let eventsMax = 100
  /// The number of causes per transaction, each with at most two writes.
  private static let causesPageSize = 200

  /// Creates the service for a database.
  init(firestore: Firestore, documents: DocumentReader, now: @escaping @Sendable () -> Date) {
    self.firestore = firestore
    self.documents = documents
    self.now = now
  }

  /// The result of checking an event.
  public struct Report: Sendable, Hashable {
    /// The number of events that overlap with this one and are not over.
    public var conflicts = 0
    /// The number of reminders that were written or have a new text.
    public var written = 0
    /// The number of reminders of former overlaps.
    public var withdrawn = 0
  }

  /// Updates the reminders of one event's overlaps.
  ///
  /// Only scheduled events overlap, and adjacent events do not. Events that are over lead to no
  /// reminder. All reminders of an event are checked, one page per transaction. After a failure
  /// between two pages, another check continues the work. Throws `FirestoreError`.
  public func check(_ eventID: String, of trainerID: String) async throws -> Report {
    let events = firestore.collection(CalendarEvent.collection).document(trainerID)
      .collection(CalendarEvent.events)
    let zone = AssistantZone(
      try await documents.preferences(of: trainerID, in: firestore).timeZone
    )
    let time = Timestamp(microseconds: Int64(now().timeIntervalSince1970 * 1_000_000))
    let event = events.document(eventID)
    var report = Report()
    var last: DocumentSnapshot?
    repeat {
      let page = try await firestore.runTransaction { [last] transaction in
        try await check(event, of: trainerID, after: last, at: time, zone, transaction)
      }
      report.conflicts = page.report.conflicts
      report.written += page.report.written
      report.withdrawn += page.report.withdrawn
      last = page.last
    } while last != nil
    return report
  }

  /// The result of one page of an event's causes.
  ///
  /// If `last` is not nil, another page follows it.
  private struct Page: Sendable {
    var report: Report
    var last: DocumentSnapshot?
  }

  private func check(
    _ event: DocumentReference,
    of trainerID: String,
    after last: DocumentSnapshot?,
    at time: Timestamp,
    _ zone: AssistantZone,
    _ transaction: Transaction
  ) async throws -> Page {
    let own = appointment(try await transaction.get(event))
    let causes = firestore.collection(ReminderCause.collection)
    let query = causes.where("events", .arrayContains, event.path).limit(Self.causesPageSize)
    let stored = try await transaction.get(last.map { query.start(afterDocument: $0) } ?? query)
    var overlaps: [String: Overlap] = [:]
    if let own, own.event.endTime > time {
      for other in try await others(than: own, in: event.parent, after: time, transaction) {
        if let overlap = Overlap(own, other, trainerID) { overlaps[overlap.id] = overlap }
      }
    }
    let stale = try await stale(stored, but: overlaps, own, at: event.path, trainerID, transaction)
    let reminders = try await transaction.getAll(
      stored.map { firestore.collection(Reminder.collection).document($0.id) }
    )
    var page = Page(report: Report(conflicts: overlaps.count))
    if stored.count == Self.causesPageSize { page.last = Array(stored).last }
    // Overlaps with causes on other pages have their reminder, or had it.
    let known =
      last == nil && page.last == nil || overlaps.isEmpty
      ? [] : try await transaction.getAll(overlaps.keys.map { causes.document($0) })
    for (cause, reminder) in zip(stored, reminders) {
      if stale.contains(cause.id) {
        try transaction.delete(cause.reference)
        // A reminder that the trainer has completed or changed stays in their list.
        if reminder.exists, reminder["completed"] != .boolean(true),
          reminder["text"] == cause["text"]
        {
          try transaction.delete(reminder.reference)
        }
        page.report.withdrawn += 1
      } else if let overlap = overlaps.removeValue(forKey: cause.id) {
        let text = overlap.text(zone)
        // A text that the trainer has changed is not replaced.
        guard cause["text"] != .string(text) else { continue }
        if reminder.exists, reminder["text"] == cause["text"] {
          try transaction.update(reminder.reference, ["text": .value(text)])
        }
        try transaction.update(cause.reference, ["text": .value(text)])
        page.report.written += 1
      }
    }
    for cause in known where cause.exists { overlaps[cause.id] = nil }
    for (id, overlap) in overlaps {
      let cause = ReminderCause(
        trainerId: trainerID,
        text: overlap.text(zone),
        events: overlap.pair.map { event.parent.document($0.id).path }
      )
      try cause.write(id, dueDate: overlap.dueDate, firestore, transaction)
      page.report.written += 1
    }
    return page
  }

  // MARK: Events

  /// Reads a scheduled event with a duration above zero; nil for any other event.
  private func appointment(_ snapshot: DocumentSnapshot) -> Appointment? {
    guard let event = documents.read(snapshot, as: CalendarEvent.self)?.value,
      event.status == .scheduled, event.startTime < event.endTime
    else { return nil }
    return Appointment(id: snapshot.id, event: event)
  }

  /// Returns the scheduled events that overlap with an event and are not over.
  ///
  /// Events can have any duration. Ordering by the end time lets the query skip events that are
  /// over.
  private func others(
    than own: Appointment,
    in events: CollectionReference,
    after now: Timestamp,
    _ transaction: Transaction
  ) async throws -> [Appointment] {
    let query = events.where("status", .equal, CalendarEvent.Status.scheduled.rawValue)
      .where("endTime", .greaterThan, max(own.event.startTime, now))
      .where("startTime", .lessThan, own.event.endTime)
      // The limit includes the event itself, and one more to detect that there are too many.
      .order(by: "endTime").limit(Self.eventsMax + 2)
    let others = try await transaction.get(query).filter { $0.id != own.id }
    if others.count > Self.eventsMax {
      Logger.current.warning(
        "An event overlaps with more events than are compared",
        metadata: ["calendar.event.id": "\(own.id)", "events.max": "\(Self.eventsMax)"]
      )
    }
    return others.prefix(Self.eventsMax).compactMap { appointment($0) }
  }

  /// Returns the ids of the causes whose events no longer overlap.
  private func stale(
    _ stored: QuerySnapshot,
    but overlaps: [String: Overlap],
    _ own: Appointment?,
    at place: String,
    _ trainerID: String,
    _ transaction: Transaction
  ) async throws -> Set<String> {
    let unknown = stored.filter { overlaps[$0.id] == nil }
    let ids = Set(unknown.map(\.id))
    guard let own, !unknown.isEmpty else { return ids }
    // Events that are over, or exceed the number of compared events, may still overlap.
    let others = Set(
      try unknown.flatMap { try $0.data(as: Lenient<ReminderCause>.self).value?.events ?? [] }
    ).subtracting([place])
    let now = try await transaction.getAll(others.sorted().map { firestore.document($0) })
    return ids.subtracting(
      now.compactMap { appointment($0) }.compactMap { other in
        Overlap(own, other, trainerID)?.id
      }
    )
  }
}

/// A scheduled event with its id.
private struct Appointment: Sendable {
  var id: String
  var event: CalendarEvent
}

/// Two overlapping events of a trainer.
private struct Overlap: Sendable {
  /// The two events, the earlier one first; ids decide between equal times.
  let pair: [Appointment]
  /// An id derived from the two events and their times.
  let id: String

  private static let day: Int64 = 86_400_000_000
  private static let titleBytesMax = 100

  /// Creates an overlap; nil for events that do not overlap or are only adjacent.
  init?(_ one: Appointment, _ other: Appointment, _ trainerID: String) {
    guard one.event.startTime < other.event.endTime, other.event.startTime < one.event.endTime
    else {
      return nil
    }
    pair = [one, other].sorted { ($0.event.startTime, $0.id) < ($1.event.startTime, $1.id) }
    id = ContentHash.of(
      ["calendarConflict", trainerID]
        + pair.flatMap { appointment in
          [
            appointment.id, "\(appointment.event.startTime.microseconds)",
            "\(appointment.event.endTime.microseconds)",
          ]
        }
    )
  }

  /// The time of the reminder, one day before the first event begins.
  var dueDate: Timestamp {
    let start = pair[0].event.startTime.microseconds
    // No reminder can be due before 1970, and subtracting a day could overflow.
    return Timestamp(microseconds: max(0, start - Self.day))
  }

  /// Returns the text of the reminder, with times in the given zone.
  func text(_ zone: AssistantZone) -> String {
    let titles = pair.map { appointment in
      let title = appointment.event.title.oneLine.prefix(bytesMax: Self.titleBytesMax)
      return title.isEmpty ? "An event without a title" : "\"\(title)\""
    }
    let start = zone.text(pair[1].event.startTime)
    return "\(titles[0]) and \(titles[1]) overlap on \(start.prefix(10)) at \(start.suffix(5))."
  }
}

extension BackendServices {
  /// The service that reminds trainers of overlapping events in their calendars.
  public var calendarConflicts: CalendarConflicts {
    CalendarConflicts(firestore: firestore, documents: documents, now: retries.now)
  }
}
