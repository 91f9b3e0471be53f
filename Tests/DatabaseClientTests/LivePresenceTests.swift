import DatabaseClient
import Foundation
import PsstModels
import PsstServices
import TestSupport
import Testing

@Suite("Psst's presence against the Realtime Database of the suite", .timeLimit(.minutes(2)))
struct LivePresenceTests {
  @Test("A user with two devices is online until the last has gone")
  func devices() async throws {
    try await LiveDatabaseTests.with { database in
      let place = database.reference("presence/tina")
      func stored() async throws -> UserPresence? { try await place.get().data() }
      let phone = PresenceService(database: database, uid: "tina")
      let tablet = PresenceService(database: database, uid: "tina")
      try await phone.goOnline()
      try await tablet.goOnline()
      #expect(try await stored()?.online == true)

      await phone.goOffline()
      try await eventually("one device is left, which says so") {
        let snapshot = try await place.get()
        let isOnline: Bool? = try snapshot.child("online").data()
        return snapshot.child("devices").children.count == 1 && isOnline == true
      }
      await tablet.goOffline()
      try await eventually("the last device has gone") { try await stored()?.online == false }
      #expect(try await stored()?.lastSeen != nil)
    }
  }

  @Test("Typing is shown to the other, and not to oneself")
  func typing() async throws {
    try await LiveDatabaseTests.with { database in
      let tina = TypingIndicatorService(database: database, uid: "tina")
      // A device's clock that is behind forgets nothing.
      let carl = TypingIndicatorService(database: database, uid: "carl", now: { .distantPast })
      try await tina.setTyping(true, in: "c1")
      try await carl.setTyping(true, in: "c1")
      var seen: [[String]] = []
      for try await typing in carl.observeTyping(in: "c1") {
        seen.append(typing)
        if typing == ["tina"] { try await tina.setTyping(false, in: "c1") }
        if seen.count > 1, typing.isEmpty { break }
      }
      #expect(seen.suffix(2) == [["tina"], []])
    }
  }
}
