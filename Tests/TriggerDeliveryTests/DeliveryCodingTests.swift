import DocumentModel
import Events
import Identity
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery rows")
struct DeliveryCodingTests {
  private static let time = Timestamp(microseconds: 1_800_000_000_123_456)

  /// Deliveries that differ in every field.
  private static let samples: [Delivery] = {
    var settled = Delivery.sample(sequence: .max, function: "long_name-1", at: time)
    settled.cause = DeliveryID(sequence: 7, changeIndex: 2, function: "before")
    settled.depth = 3
    settled.state = .dead
    settled.attempts = 16
    settled.crashes = 2
    settled.executions = 5
    settled.lastStatus = 503
    settled.firstAttemptTime = time.advanced(by: .seconds(1))
    settled.dueTime = time.advanced(by: .seconds(9))
    settled.settledTime = time.advanced(by: .seconds(5))
    settled.lastError = "no luck"
    settled.eventBytes = 900_000
    settled.origin = Delivery.Origin(root: EventPlace(sequence: 4, index: 7), generation: 2)
    var deleted = Delivery.sample(sequence: 3, at: Timestamp(microseconds: -1))
    deleted.source = .document(DocumentEventType(.written, hasAuthContext: true), change: .deleted)
    deleted.lane = nil
    deleted.state = .failed
    var postponed = Delivery.sample(sequence: 4, at: time)
    postponed.attempts = 1
    postponed.isUnanswered = true
    postponed.postpone(to: time.advanced(by: .seconds(1)), "later", at: time)
    var untried = Delivery.sample(sequence: 5, at: time)
    untried.eventBytes = 100
    untried.origin = Delivery.Origin(root: EventPlace(sequence: .max, index: 0), generation: 0)
    return [.sample(at: time), settled, deleted, postponed, untried] + occurrences
  }()

  private static let occurrences: [Delivery] = [
    Occurrence.event(
      CloudEvent(
        id: "e",
        source: "//storage",
        type: "google.cloud.storage.object.v1.finalized",
        subject: "objects/a b.jpg",
        time: "2026-01-01T00:00:00Z",
        dataContentType: "application/json",
        extensions: ["bucket": "b"],
        data: Array("{}".utf8)
      )
    ),
    .schedule(function: "nightly", time: time),
    .task(
      EnqueuedTask(
        id: "t1",
        queue: "work",
        body: [0, 255],
        headers: ["x-a": "1"],
        scheduleTime: time,
        dispatchDeadline: 15
      )
    ),
    .value(
      DatabaseChange(
        instance: "i",
        path: ["a", "b"],
        before: Array("1".utf8),
        after: [0x7B, 0x7D]
      )
    ),
  ].map { occurrence in
    Delivery(
      id: DeliveryID(sequence: 9, changeIndex: 0, function: "f"),
      event: DeliveryEvent(content: .occurrence(occurrence), commitTime: time, auth: .admin)
    )
  }

  @Test("A row reads back as what was written", arguments: samples)
  func roundTrip(delivery: Delivery) throws {
    #expect(try Delivery(delivery.id, decoding: delivery.encoded()) == delivery)
  }

  @Test("A row cut short anywhere is corrupt", arguments: samples)
  func truncated(delivery: Delivery) {
    let bytes = delivery.encoded()
    for count in bytes.indices {
      #expect(throws: CorruptDataError.self) {
        try Delivery(delivery.id, decoding: Array(bytes[..<count]))
      }
    }
  }

  @Test("Garbage is refused or read, and never traps")
  func garbage() {
    var generator = SeededGenerator.forTest()
    let bytes = Self.samples[1].encoded()
    for _ in 0..<2000 {
      var damaged = bytes
      for _ in 0...Int.random(in: 0..<3, using: &generator) {
        damaged[Int.random(in: damaged.indices, using: &generator)] = .random(
          in: 0...255,
          using: &generator
        )
      }
      // A changed letter in a name still decodes; only a trap fails this test.
      _ = try? Delivery(Self.samples[1].id, decoding: damaged)
    }
  }

  @Test("A row of another version is corrupt")
  func version() {
    var bytes = Self.samples[0].encoded()
    bytes[0] = 9

    #expect(throws: CorruptDataError.self) {
      try Delivery(Self.samples[0].id, decoding: bytes)
    }
  }

  @Test(
    "An id reads back from its text",
    arguments: [
      DeliveryID(sequence: 0, changeIndex: 0, function: "f"),
      DeliveryID(sequence: .max, changeIndex: .max, function: "a-b_c"),
    ]
  )
  func idText(id: DeliveryID) {
    #expect(DeliveryID(id.description) == id)
  }

  @Test("What is no id is nil", arguments: ["", "1", "1.2", "a.0.f", "1.-1.f", "..f", "1.0."])
  func idGarbage(text: String) {
    #expect(DeliveryID(text) == nil)
  }
}
