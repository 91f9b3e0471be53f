import FirestoreClient
import Foundation
import FunctionsTesting
import PsstModels
import Testing

@testable import PsstServices

/// Clients' profiles, as their trainer reviews them under the access rules.
@Suite("Profile service")
struct ProfileServiceTests {
  private static let path = "clientProfiles/tina/clients/carl"

  /// Runs a test with a profile of Carl that has two goals and an injury.
  private static func run(_ test: (PeopleFixture, ProfileService) async throws -> Void)
    async throws
  {
    try await PeopleFixture.run { fixture in
      var profile = ClientProfile(clientId: "carl", trainerId: "tina")
      profile.goals = [item("g1", .goals, "Run a marathon"), item("g2", .goals, "Swim")]
      profile.injuries = [item("i1", .injuries, "Left knee")]
      profile.totalItems = 3
      try await fixture.suite.firestore.document(path).set(profile)
      try await test(fixture, fixture.app("tina").profiles)
    }
  }

  private static func item(
    _ id: String,
    _ category: ProfileCategory,
    _ text: String
  ) -> ProfileItem {
    ProfileItem(
      id: id,
      text: text,
      category: category,
      confidence: .medium,
      timestamp: Timestamp(microseconds: 1_000_000),
      sourceMessageId: "m1",
      sourceChatId: "c1"
    )
  }

  @Test("The trainer reads and observes a profile; a client without one has none")
  func read() async throws {
    try await Self.run { fixture, profiles in
      #expect(try await profiles.getProfile(of: "carl").goals.map(\.id) == ["g1", "g2"])
      for id in ["cora", "", "a/b"] {
        await #expect(throws: ProfileError.profileNotFound) {
          try await profiles.getProfile(of: id)
        }
      }
      var observed = profiles.observeProfile(of: "carl").makeAsyncIterator()
      #expect(try await observed.next()??.totalItems == 3)
      try await profiles.confirmItem("g2", of: "carl")
      #expect(try await observed.next()??.goals.map(\.confirmed) == [nil, true])
      var none = profiles.observeProfile(of: "cora").makeAsyncIterator()
      #expect(try await none.next() == .some(nil))
    }
  }

  @Test("A correction confirms the item, and changes nothing else")
  func correct() async throws {
    try await Self.run { fixture, profiles in
      let before = try #require(try await fixture.stored(Self.path))
      try await profiles.updateItem("g1", of: "carl", text: " Run a half marathon ")
      let profile = try await profiles.getProfile(of: "carl")
      #expect(profile.goals.map(\.text) == ["Run a half marathon", "Swim"])
      #expect(profile.goals.map(\.confirmed) == [true, nil])
      let after = try #require(try await fixture.stored(Self.path))
      let changed = after.keys.filter { after[$0] != before[$0] }
      #expect(Set(changed) == ["goals", "updatedAt"])
      for text in ["", " \n", String(repeating: "x", count: 501)] {
        await #expect(throws: ProfileError.invalidText) {
          try await profiles.updateItem("g1", of: "carl", text: text)
        }
      }
    }
  }

  @Test("A removed item leaves its id, and at most 500 are kept, the oldest going first")
  func remove() async throws {
    try await Self.run { fixture, profiles in
      try await fixture.suite.firestore.document(Self.path).update([
        "removedItemIds": .value((0..<500).map { "r\($0)" })
      ])
      try await profiles.removeItem("g1", of: "carl")
      let profile = try await profiles.getProfile(of: "carl")
      #expect(profile.goals.map(\.id) == ["g2"])
      #expect(profile.totalItems == 2)
      #expect(profile.removedItemIds.count == 500)
      #expect(profile.removedItemIds.first == "r1")
      #expect(profile.removedItemIds.last == "g1")
      for call in [
        { try await profiles.removeItem("g1", of: "carl") },
        { try await profiles.confirmItem("g1", of: "carl") },
        { try await profiles.updateItem("g1", of: "carl", text: "Swim") },
      ] as [() async throws -> Void] {
        await #expect(throws: ProfileError.itemNotFound) { try await call() }
      }
    }
  }

  @Test("A correction keeps what the server has added meanwhile")
  func atOnce() async throws {
    try await Self.run { fixture, profiles in
      fixture.line.decide { commit in
        .none {
          guard commit == 1 else { return }
          let goals = [Self.item("g1", .goals, "Run a marathon"), Self.item("g3", .goals, "Ski")]
          try await fixture.suite.firestore.document(Self.path).update([
            "goals": .value(goals), "totalItems": 3,
          ])
        }
      }
      try await profiles.confirmItem("g1", of: "carl")
      var profile = try await profiles.getProfile(of: "carl")
      #expect(profile.goals.map(\.id) == ["g1", "g3"])
      #expect(profile.goals.map(\.confirmed) == [true, nil])

      fixture.line.decide(nil)
      try await profiles.markReviewed("carl")
      profile = try await profiles.getProfile(of: "carl")
      #expect(profile.lastReviewedAt != nil)
    }
  }

  @Test("A profile that changes all the time is left to the next attempt")
  func alwaysChanging() async throws {
    try await Self.run { fixture, profiles in
      fixture.line.decide { _ in
        .none {
          try await fixture.suite.firestore.document(Self.path).update([
            "updatedAt": .value(fixture.suite.clock.now), "totalItems": .increment(1),
          ])
        }
      }
      await #expect(throws: ProfileError.networkError) {
        try await profiles.confirmItem("g1", of: "carl")
      }
    }
  }

  @Test("An item that cannot be read stays where it is, and counts")
  func unreadable() async throws {
    try await Self.run { fixture, profiles in
      try await fixture.suite.firestore.document(Self.path).update(["goals": .arrayUnion("odd")])
      try await profiles.removeItem("g1", of: "carl")
      let stored = try #require(try await fixture.stored(Self.path))
      guard case .array(let goals)? = stored["goals"] else {
        Issue.record("\(String(describing: stored["goals"]))")
        return
      }
      #expect(goals.last == .string("odd"))
      #expect(stored["totalItems"] == .integer(3))
    }
  }

  @Test("Nobody but the trainer of the pair reads or changes a profile")
  func wrongUser() async throws {
    try await Self.run { fixture, _ in
      let before = try await fixture.stored(Self.path)
      for uid in ["carl", "tom"] {
        let profiles = ProfileService(
          firestore: fixture.line.firestore.acting(as: UnsignedTokens(uid: uid)),
          uid: "tina"
        )
        for call in [
          { _ = try await profiles.getProfile(of: "carl") },
          { try await profiles.confirmItem("g1", of: "carl") },
          { try await profiles.removeItem("g1", of: "carl") },
          { try await profiles.markReviewed("carl") },
        ] as [() async throws -> Void] {
          let error = await #expect(throws: ProfileError.self) { try await call() }
          #expect(error == .unauthorized)
          #expect(error?.errorDescription == "You are not authorized to perform this action")
        }
        var observed = profiles.observeProfile(of: "carl").makeAsyncIterator()
        await #expect(throws: ProfileError.unauthorized) { try await observed.next() }
      }
      let after = try await fixture.stored(Self.path)
      #expect(after == before)
    }
  }
}

/// A trainer's calendar, as the app changes it under the access rules.
@Suite("Calendar service")
struct CalendarServiceTests {
  private static func hour(_ hour: Int64) -> Timestamp {
    Timestamp(microseconds: 1_700_000_000_000_000 + hour * 3_600_000_000)
  }

  @Test("Events are added, listed by their start, observed, changed and deleted")
  func events() async throws {
    try await PeopleFixture.run { fixture in
      let calendar = fixture.app("tina").calendar
      var observed = calendar.observeEvents(in: Self.hour(0)..<Self.hour(24)).makeAsyncIterator()
      #expect(try await observed.next() == [])
      let late = try await calendar.addEvent(
        title: "Call",
        from: Self.hour(5),
        to: Self.hour(6),
        with: "carl",
        type: .call
      )
      #expect(try await observed.next() == [late])
      let early = try await calendar.addEvent(
        title: "Gym",
        from: Self.hour(2).date,
        to: Self.hour(3).date
      )
      #expect(try await observed.next() == [early, late])
      try await calendar.addEvent(title: "Later", from: Self.hour(24), to: Self.hour(25))
      #expect(
        try await calendar.getEvents(in: Self.hour(0)..<Self.hour(24)).map(\.id) == [
          early.id, late.id,
        ]
      )
      try await calendar.updateEvent(early.id, title: "Run", from: Self.hour(7), to: Self.hour(8))
      try await calendar.setStatus(.completed, of: late.id)
      let changed = try await calendar.getEvents(in: Self.hour(0).date..<Self.hour(24).date)
      #expect(changed.map(\.title) == ["Call", "Run"])
      #expect(changed.map(\.status) == [.completed, .scheduled])
      #expect(changed.map(\.clientId) == ["carl", nil])
      try await calendar.deleteEvent(early.id)
      for id in [early.id, "", "a/b"] {
        await #expect(throws: CalendarError.eventNotFound) { try await calendar.deleteEvent(id) }
      }
    }
  }

  @Test("An event needs a title, and an end after its start")
  func invalid() async throws {
    try await PeopleFixture.run { fixture in
      let calendar = fixture.app("tina").calendar
      for (title, from, to, error) in [
        ("", 1 as Int64, 2 as Int64, CalendarError.invalidTitle), (" ", 1, 2, .invalidTitle),
        (String(repeating: "x", count: 501), 1, 2, .invalidTitle), ("Run", 2, 2, .invalidTimes),
        ("Run", 3, 2, .invalidTimes),
      ] {
        await #expect(throws: error) {
          try await calendar.addEvent(title: title, from: Self.hour(from), to: Self.hour(to))
        }
        await #expect(throws: error) {
          try await calendar.updateEvent(
            "e",
            title: title,
            from: Self.hour(from),
            to: Self.hour(to)
          )
        }
      }
    }
  }

  @Test("Nobody reads or changes another trainer's calendar, and a client has none")
  func wrongUser() async throws {
    try await PeopleFixture.run { fixture in
      let event = try await fixture.app("tina").calendar.addEvent(
        title: "Gym",
        from: Self.hour(2),
        to: Self.hour(3)
      )
      let other = CalendarService(
        firestore: fixture.line.firestore.acting(as: UnsignedTokens(uid: "tom")),
        uid: "tina"
      )
      for call in [
        { _ = try await other.getEvents(in: Self.hour(0)..<Self.hour(9)) },
        { try await other.addEvent(title: "X", from: Self.hour(1), to: Self.hour(2)) },
        { try await other.setStatus(.cancelled, of: event.id) },
        { try await other.deleteEvent(event.id) },
        {
          try await fixture.app("carl").calendar.addEvent(
            title: "X",
            from: Self.hour(1),
            to: Self.hour(2)
          )
        },
      ] as [() async throws -> Void] {
        await #expect(throws: CalendarError.unauthorized) { try await call() }
      }
      let stored = try await fixture.ids("calendar/tina/events")
      #expect(stored == [event.id])
    }
  }
}
