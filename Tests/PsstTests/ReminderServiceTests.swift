import FirestoreClient
import Foundation
import FunctionsTesting
import PsstModels
import PsstServices
import Testing

/// Reminders and preferences, as the app reads and writes them under the access rules.
@Suite("Reminder service")
struct ReminderServiceTests {
  private static func minute(_ minute: Int64) -> Timestamp {
    Timestamp(microseconds: 1_800_000_000_000_000 + minute * 60_000_000)
  }

  @Test("Open reminders are listed by their due date, observed, completed and deleted")
  func list() async throws {
    try await PeopleFixture.run { fixture in
      let reminders = fixture.app("tina").reminders
      var observed = reminders.observeReminders().makeAsyncIterator()
      #expect(try await observed.next() == [])
      let later = try await reminders.addReminder(text: "Plan", dueDate: Self.minute(2))
      #expect(try await observed.next() == [later])
      let sooner = try await reminders.addReminder(text: "Call", dueDate: Self.minute(1).date)
      #expect(try await observed.next() == [sooner, later])
      #expect(sooner.dueDate == Self.minute(1))
      let stored = try #require(try await fixture.stored("reminders/\(sooner.id)"))
      #expect(Set(stored.keys) == ["trainerId", "text", "dueDate", "completed", "createdBy"])

      // One of the assistant's, one of another trainer, and one that cannot be read.
      let collection = fixture.suite.firestore.collection("reminders")
      for (id, trainer) in [("ai", "tina"), ("other", "tom")] {
        try await collection.document(id).set(
          Reminder(trainerId: trainer, text: "Hi", dueDate: Self.minute(0), createdBy: "ai")
        )
      }
      try await collection.document("broken").set([
        "trainerId": "tina", "text": 7, "dueDate": .value(Self.minute(0)), "completed": false,
      ])
      #expect(try await reminders.getReminders().map(\.id) == ["ai", sooner.id, later.id])

      try await reminders.completeReminder(reminderId: sooner.id)
      try await reminders.deleteReminder(reminderId: "ai")
      #expect(try await reminders.getReminders() == [later])
      #expect(try await fixture.stored("reminders/\(sooner.id)")?["completed"] == .boolean(true))
    }
  }

  @Test("A trainer reaches no other's reminders, and a client has none")
  func others() async throws {
    try await PeopleFixture.run { fixture in
      let reminder = try await fixture.app("tina").reminders
        .addReminder(text: "Call", dueDate: Self.minute(1))
      for id in [reminder.id, "missing", "a/b", ""] {
        let reminders = fixture.app("tom").reminders
        await #expect(throws: ReminderError.reminderNotFound) {
          try await reminders.completeReminder(reminderId: id)
        }
        await #expect(throws: ReminderError.reminderNotFound) {
          try await reminders.deleteReminder(reminderId: id)
        }
      }
      await #expect(throws: ReminderError.unauthorized) {
        try await fixture.app("carl").reminders.addReminder(text: "Hi", dueDate: Self.minute(1))
      }
      #expect(try await fixture.app("tina").reminders.getReminders() == [reminder])
    }
  }

  @Test(
    "A reminder without a visible text is refused before anything is sent",
    arguments: ["", " \n", "\u{200B}", String(repeating: "x", count: 5001)]
  )
  func invalid(text: String) async throws {
    try await PeopleFixture.run { fixture in
      fixture.line.setOffline(true)
      let error = await #expect(throws: ReminderError.self) {
        try await fixture.app("tina").reminders.addReminder(text: text, dueDate: Self.minute(1))
      }
      #expect(error?.errorDescription == "Please enter a text of at most 5,000 characters")
      await #expect(throws: ReminderError.networkError) {
        try await fixture.app("tina").reminders.getReminders()
      }
    }
  }

  // MARK: Preferences

  @Test("Preferences are saved, observed, and go back to their defaults")
  func preferences() async throws {
    try await PeopleFixture.run { fixture in
      let service = fixture.app("tina").preferences
      var observed = service.observePreferences().makeAsyncIterator()
      #expect(try await observed.next() == AssistantPreferences())
      try await fixture.suite.firestore.document("users/tina/preferences/assistant")
        .set(["voice": "alto", "tone": 7])
      var wish = try await service.getPreferences()
      #expect(wish.tone == nil)
      wish = AssistantPreferences()
      wish.tone = "warm"
      wish.timeZone = "Europe/Berlin"
      wish.autoSend = true
      wish.inactiveDays = 7
      try await service.savePreferences(wish)
      #expect(try await service.getPreferences() == wish)
      try await service.savePreferences(AssistantPreferences())
      #expect(try await service.getPreferences() == AssistantPreferences())
      let stored = try await fixture.stored("users/tina/preferences/assistant")
      #expect(stored == ["voice": .string("alto")])
    }
  }

  @Test("Preferences that the assistant would not read are refused")
  func invalidPreferences() async throws {
    try await PeopleFixture.run { fixture in
      let service = fixture.app("tina").preferences
      var wishes = Array(repeating: AssistantPreferences(), count: 5)
      wishes[0].tone = String(repeating: "x", count: 201)
      wishes[1].style = String(repeating: "é", count: 101)
      wishes[2].timeZone = "Mars/Olympus"
      wishes[3].inactiveDays = 0
      wishes[4].inactiveDays = 366
      for wish in wishes {
        await #expect(throws: UserServiceError.invalidPreferences) {
          try await service.savePreferences(wish)
        }
      }
      let stored = try await fixture.stored("users/tina/preferences/assistant")
      #expect(stored == nil)
    }
  }
}
