import FirestoreClient
import Logging
import PsstModels

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Keeps one reminder for each two events of a trainer that overlap.
///
/// What is stored follows from the events as they are: the same events leave the same reminders, in
/// whatever order and however often their changes come. A reminder's id follows from both events and
/// their times, so that one that the trainer has completed or deleted does not come back; when an
/// event is moved, cancelled or deleted, the reminder of the former overlap goes.
public struct CalendarConflicts: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader
  private let now: @Sendable () -> Date

  /// The most events that one event is compared with: who has so many at a time knows.
  private static let eventsMax = 100
  /// The causes that one transaction looks at, with at most two writes for each of them.
  private static let causesPageSize = 200

  /// Conflicts in a database.
  init(firestore: Firestore, documents: DocumentReader, now: @escaping @Sendable () -> Date) {
    self.firestore = firestore
    self.documents = documents
    self.now = now
  }

  /// What a change of an event came to.
  public struct Report: Sendable, Hashable {
    /// The events that overlap with this one and are not over.
    public var conflicts = 0
    /// Reminders that were written or have other words now.
    public var written = 0
    /// Reminders of overlaps that are no more.
    public var withdrawn = 0
  }

  /// Brings the reminders of one event's overlaps up to date.
  ///
  /// Only scheduled events overlap, and events that only touch do not. What is over when it is
  /// looked at brings no reminder. However many reminders an event has, each is looked at, a page in
  /// a transaction; what fails between two pages goes on where it is checked again. Throws
  /// `FirestoreError`.
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

  /// What one page of an event's causes came to; the page after `last` is next, if there is one.
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
    // Those of other pages have their reminder, or had it.
    let known =
      last == nil && page.last == nil || overlaps.isEmpty
      ? [] : try await transaction.getAll(overlaps.keys.map { causes.document($0) })
    for (cause, reminder) in zip(stored, reminders) {
      if stale.contains(cause.id) {
        try transaction.delete(cause.reference)
        // What the trainer has completed or changed stays in their list.
        if reminder.exists, reminder["completed"] != .boolean(true),
          reminder["text"] == cause["text"]
        {
          try transaction.delete(reminder.reference)
        }
        page.report.withdrawn += 1
      } else if let overlap = overlaps.removeValue(forKey: cause.id) {
        let text = overlap.text(zone)
        // A text that the trainer has changed is theirs.
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

  /// An event that takes time, and still takes place; nil for any other.
  private func appointment(_ snapshot: DocumentSnapshot) -> Appointment? {
    guard let event = documents.read(snapshot, as: CalendarEvent.self)?.value,
      event.status == .scheduled, event.startTime < event.endTime
    else { return nil }
    return Appointment(id: snapshot.id, event: event)
  }

  /// The scheduled events that overlap with one and are not over.
  ///
  /// The order by ends keeps the query from reading what is over; an event may take any time.
  private func others(
    than own: Appointment,
    in events: CollectionReference,
    after now: Timestamp,
    _ transaction: Transaction
  ) async throws -> [Appointment] {
    let query = events.where("status", .equal, CalendarEvent.Status.scheduled.rawValue)
      .where("endTime", .greaterThan, max(own.event.startTime, now))
      .where("startTime", .lessThan, own.event.endTime)
      // One for the event itself, and one by which too many are known.
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

  /// The ids of the causes of an event that are no overlaps any more.
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
    // Events that are over, or are more than are compared, may still overlap.
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

/// Two events of a trainer that overlap.
private struct Overlap: Sendable {
  /// The two, the earlier one first; ids decide between equal times.
  let pair: [Appointment]
  /// An id that follows from the two and their times.
  let id: String

  private static let day: Int64 = 86_400_000_000
  private static let titleBytesMax = 100

  /// An overlap; nil for events that only touch, or not even that.
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

  /// A day before the first of the two begins.
  var dueDate: Timestamp {
    let start = pair[0].event.startTime.microseconds
    // Nobody can have been reminded before 1970, and not every earlier time has a day before it.
    return Timestamp(microseconds: max(0, start - Self.day))
  }

  /// What the trainer reads; the times are those of the zone.
  func text(_ zone: AssistantZone) -> String {
    let titles = pair.map { appointment in
      let title = appointment.event.title.oneLine.prefix(bytesMax: Self.titleBytesMax)
      return title.isEmpty ? "An event without a title" : "\"\(title)\""
    }
    let start = zone.text(pair[1].event.startTime)
    return "\(titles[0]) and \(titles[1]) overlap on \(start.prefix(10)) at \(start.suffix(5))."
  }
}
