import FirestoreClient
import FunctionsTesting
@testable import PsstBackend
import Synchronization
import TestSupport
import Testing

@Suite("Lease", .timeLimit(.minutes(5)))
struct LeaseTests {
  private struct WorkError: Error {}

  private final class Order: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
  }

  private func lease(_ fixture: AdministrationFixture) -> Lease {
    Lease("work", in: fixture.faults.firestore, clock: fixture.clock)
  }

  private func document(_ fixture: AdministrationFixture) -> DocumentReference {
    fixture.db.document("leases/work")
  }

  /// Waits until the lease document has changed, which happens when a test advances the clock.
  private func change(
    of lease: DocumentReference,
    since time: Timestamp?
  ) async throws -> DocumentSnapshot? {
    for try await snapshot in lease.snapshots() where snapshot.updateTime != time {
      return snapshot
    }
    return nil
  }

  @Test("Work runs with the lease in its name, and leaves none behind")
  func held() async throws {
    try await withAdministration { fixture in
      let lease = lease(fixture)
      let run = try await lease.hold { try await document(fixture).get()["run"] }

      #expect(run == .string(lease.run))
      #expect(try await !document(fixture).get().exists)
    }
  }

  @Test("Work that fails or is cancelled gives the lease back")
  func failed() async throws {
    try await withAdministration { fixture in
      await #expect(throws: WorkError.self) {
        try await lease(fixture).hold { throw WorkError() }
      }
      #expect(try await !document(fixture).get().exists)

      let holder = lease(fixture)
      let task = Task {
        try await holder.hold { try await Task.sleep(for: .seconds(3600)) }
      }
      _ = try await change(of: document(fixture), since: nil)
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await !document(fixture).get().exists)
    }
  }

  @Test("A lease that is taken without an answer is given back")
  func lostAnswer() async throws {
    try await withAdministration { fixture in
      fixture.faults.decide { $0 == 1 ? .unheard : .none() }
      await #expect(throws: FirestoreError.self) { try await lease(fixture).hold {} }

      let left = try await document(fixture).get()
      #expect(fixture.faults.commits == 2 && !left.exists)
    }
  }

  @Test("A held lease is renewed for as long as the work takes")
  func renewed() async throws {
    try await withAdministration { fixture in
      try await lease(fixture).hold {
        for _ in 0..<3 {
          let before = try await document(fixture).get()
          await fixture.clock.waitForSleepers()
          try await fixture.suite.clock.advance(by: .seconds(4))
          fixture.clock.advance(by: .seconds(4))
          let after = try await change(of: document(fixture), since: before.updateTime)
          #expect(after?["run"] == before["run"])
        }
      }
    }
  }

  @Test(
    "Work whose lease another run took, or somebody deleted, is cancelled",
    arguments: [true, false]
  )
  func lost(isTaken: Bool) async throws {
    try await withAdministration { fixture in
      let wasCancelled = Mutex(false)
      let error = await #expect(throws: LeaseError.self) {
        try await lease(fixture).hold {
          if isTaken {
            try await fixture.lease("work")
          } else {
            try await document(fixture).delete()
          }
          await fixture.clock.waitForSleepers()
          fixture.clock.advance(by: .seconds(4))
          do {
            try await Task.sleep(for: .seconds(3600))
          } catch {
            wasCancelled.withLock { $0 = true }
          }
        }
      }
      #expect(error?.message.contains(isTaken ? "the run other took it" : "deleted it") == true)
      #expect(wasCancelled.withLock { $0 })
      // A lease that belongs to another run is not released.
      let left = try await document(fixture).get()
      #expect(left["run"] == (isTaken ? .string("other") : nil))
    }
  }

  @Test("A renewal that fails is made again, and in time the work goes on")
  func renewedLate() async throws {
    try await withAdministration { fixture in
      try await lease(fixture).hold {
        let before = try await document(fixture).get()
        try await fixture.suite.clock.advance(by: .seconds(4))
        fixture.faults.decide { $0 == 1 ? .refused : .none() }
        await fixture.clock.waitForSleepers()
        fixture.clock.advance(by: .seconds(4))
        // The time limit of the renewal and the wait before the next attempt.
        await fixture.clock.waitForSleepers(2)
        #expect(try await document(fixture).get().updateTime == before.updateTime)
        fixture.clock.advance(by: .seconds(1))
        #expect(try await change(of: document(fixture), since: before.updateTime)?.exists == true)
      }
    }
  }

  @Test("Work that cannot renew its lease is cancelled before others may take it")
  func unreachable() async throws {
    try await withAdministration { fixture in
      let error = await #expect(throws: LeaseError.self) {
        try await lease(fixture).hold {
          fixture.faults.decide { _ in .refused }
          await fixture.clock.waitForSleepers()
          fixture.clock.advance(by: .seconds(4))
          await fixture.clock.waitForSleepers(2)
          fixture.clock.advance(by: .seconds(20))
          try await Task.sleep(for: .seconds(3600))
        }
      }
      #expect(error?.message.contains("did not answer") == true)
    }
  }

  @Test(
    "A lease is free 30 s after its last renewal, by the database's clock",
    arguments: [29, 31]
  )
  func dead(age: Int) async throws {
    try await withAdministration { fixture in
      try await fixture.lease("work")
      try await fixture.suite.clock.advance(by: .seconds(age))
      if age < 30 {
        let lease = lease(fixture)
        #expect(await fixture.refusal { try await lease.hold {} } is LeaseError)
      } else {
        try await lease(fixture).hold {}
      }
    }
  }

  @Test("A run that waits for a dead one goes on once that one's lease is over")
  func outlived() async throws {
    try await withAdministration { fixture in
      try await fixture.lease("work")
      async let held: Void = lease(fixture).hold {}
      await fixture.clock.waitForSleepers()
      try await fixture.outliveLeases()
      fixture.clock.advance(by: .seconds(31))
      try await held
    }
  }

  @Test("Whatever stands in a lease, it holds up others for its time and no longer")
  func malformed() async throws {
    try await withAdministration { fixture in
      try await fixture.lease("work", of: 7)
      let other = lease(fixture)
      #expect(await fixture.refusal { try await other.hold {} } is LeaseError)

      try await fixture.outliveLeases()
      try await lease(fixture).hold {}
    }
  }

  @Test("A run that waits begins as soon as the other gives the lease back")
  func waits() async throws {
    try await withAdministration { fixture in
      let order = Order()
      let other = lease(fixture)
      let waiting = try await lease(fixture).hold {
        let waiting = Task { try await other.hold { order.add("second") } }
        // One task renews the lease and the other one waits.
        await fixture.clock.waitForSleepers(2)
        order.add("first")
        return waiting
      }
      try await waiting.value
      #expect(order.all == ["first", "second"])
    }
  }
}
