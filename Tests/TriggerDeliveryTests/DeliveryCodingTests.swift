import DocumentModel
import Events
import Identity
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery rows")
struct DeliveryCodingTests {
  private static let time = Timestamp(microseconds: 1_800_000_000_123_456)

  /// Deliveries that differ from one another in every field.
  private static let samples: [Delivery] = {
    var settled = Delivery.sample(sequence: 1 << 62, function: "long_name-1", at: time)
    settled.change.before = settled.change.after
    settled.change.after = nil
    settled.id.sequence = .max
    settled.kind = .deleted
    settled.auth = .user(UserIdentity(uid: "ålice", claimsJSON: #"{"admin":true}"#))
    settled.retries = true
    settled.state = .dead
    settled.attempts = 16
    settled.crashes = 2
    settled.dueTime = time.advanced(by: .seconds(9))
    settled.settledTime = time.advanced(by: .seconds(5))
    settled.lastError = "no luck"
    var failed = Delivery.sample(sequence: 3, at: Timestamp(microseconds: -1))
    failed.auth = .unauthenticated
    failed.state = .failed
    failed.kind = .written
    failed.change.before = failed.change.after
    var succeeded = Delivery.sample(sequence: 4, at: time)
    succeeded.state = .succeeded
    succeeded.kind = .updated
    return [.sample(at: time), settled, failed, succeeded]
  }()

  @Test("A row reads back as what was written", arguments: samples)
  func roundTrip(delivery: Delivery) throws {
    #expect(try Delivery(decoding: delivery.encoded()) == delivery)
  }

  @Test("A row cut short anywhere is corrupt", arguments: samples)
  func truncated(delivery: Delivery) {
    let bytes = delivery.encoded()
    for count in bytes.indices {
      #expect(throws: CorruptDataError.self) { try Delivery(decoding: Array(bytes[..<count])) }
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
      // A flipped letter of a name reads well; only a trap would fail this test.
      _ = try? Delivery(decoding: damaged)
    }
  }

  @Test("A row of another version is corrupt")
  func version() {
    var bytes = Self.samples[0].encoded()
    bytes[0] = 2

    #expect(throws: CorruptDataError.self) { try Delivery(decoding: bytes) }
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
