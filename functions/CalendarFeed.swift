import FirestoreClient
public import FunctionsRuntime
import PsstBackend
import PsstModels
import PsstServices

extension AppFunctions {
  /// Serves a trainer's sessions to calendar apps, as iCalendar (RFC 5545).
  ///
  /// A calendar app cannot sign in. The trainer chooses a key, stores it as `feedKey` in
  /// `users/{uid}/preferences/calendar`, and subscribes to
  /// `…/calendarFeed?trainer={uid}&key={key}`.
  public var calendarFeed: OnRequest {
    .init("calendarFeed") { request in
      guard request.method == .get else {
        throw HTTPFunctionError(.methodNotAllowed, "A calendar can only be read.")
      }
      guard let uid = request.query("trainer"), uid.isUserID, let key = request.query("key") else {
        throw HTTPFunctionError(.badRequest, "The parameters trainer and key are required.")
      }
      let preferences = try await services.firestore
        .document("users/\(uid)/preferences/calendar").get()
      // Hashes, because the time of their comparison tells nothing about the key.
      guard case .string(let feedKey)? = preferences.exists ? preferences["feedKey"] : nil,
        feedKey.utf8.count >= Self.feedKeyLengthMin,
        ContentHash.of([feedKey]) == ContentHash.of([key])
      else { throw HTTPFunctionError(.forbidden, "There is no calendar with this key.") }

      let events = try await services.firestore.collection("calendar/\(uid)/events")
        .order(by: "endTime", descending: true).limit(Self.feedEventsMax).get()
      let sessions = events.compactMap { event in
        services.documents.read(event, as: CalendarEvent.self)?.value.map { (event.id, $0) }
      }
      return HTTPFunctionResponse(
        headers: [.contentType: "text/calendar; charset=utf-8"],
        body: .bytes(Array(Self.calendar(sessions).utf8))
      )
    }
  }

  private static let feedKeyLengthMin = 16
  /// The maximum number of events in a feed, the last ones of the calendar.
  private static let feedEventsMax = 500

  private static func calendar(_ sessions: [(id: String, event: CalendarEvent)]) -> String {
    var lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Psst//Calendar//EN"]
    for (id, event) in sessions {
      lines += [
        "BEGIN:VEVENT", "UID:\(escaped(id))@psst.app", "DTSTAMP:\(basic(event.startTime))",
        "DTSTART:\(basic(event.startTime))", "DTEND:\(basic(event.endTime))",
        "SUMMARY:\(escaped(event.title))",
        "STATUS:\(event.status == .cancelled ? "CANCELLED" : "CONFIRMED")", "END:VEVENT",
      ]
    }
    lines.append("END:VCALENDAR")
    return lines.map { $0 + "\r\n" }.joined()
  }

  /// Returns a time without punctuation and fractions, such as `20260501T090000Z`.
  private static func basic(_ time: Timestamp) -> String {
    "\(time)".prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
  }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "\\", ";", ",": escaped += "\\\(character)"
      case _ where character.isNewline: escaped += "\\n"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}
