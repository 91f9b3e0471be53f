import FirestoreClient
import FunctionsTesting
@testable import PsstServices
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

  private func lease(_ world: AdministrationWorld) -> Lease {
    Lease("work", in: world.faults.firestore, clock: world.clock)
  }

  private func document(_ world: AdministrationWorld) -> DocumentReference {
    world.db.document("leases/work")
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
    try await withAdministration { world in
      let lease = lease(world)
      let run = try await lease.hold { try await document(world).get()["run"] }

      #expect(run == .string(lease.run))
      #expect(try await !document(world).get().exists)
    }
  }

  @Test("Work that fails or is cancelled gives the lease back")
  func failed() async throws {
    try await withAdministration { world in
      await #expect(throws: WorkError.self) {
        try await lease(world).hold { throw WorkError() }
      }
      #expect(try await !document(world).get().exists)

      let holder = lease(world)
      let task = Task {
        try await holder.hold { try await Task.sleep(for: .seconds(3600)) }
      }
      _ = try await change(of: document(world), since: nil)
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await !document(world).get().exists)
    }
  }

  @Test("A lease that is taken without an answer is given back")
  func lostAnswer() async throws {
    try await withAdministration { world in
      world.faults.decide { $0 == 1 ? .unheard : .none() }
      await #expect(throws: FirestoreError.self) { try await lease(world).hold {} }

      let left = try await document(world).get()
      #expect(world.faults.commits == 2 && !left.exists)
    }
  }

  @Test("A held lease is renewed for as long as the work takes")
  func renewed() async throws {
    try await withAdministration { world in
      try await lease(world).hold {
        for _ in 0..<3 {
          let before = try await document(world).get()
          await world.clock.waitForSleepers()
          try await world.suite.clock.advance(by: .seconds(4))
          world.clock.advance(by: .seconds(4))
          let after = try await change(of: document(world), since: before.updateTime)
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
    try await withAdministration { world in
      let wasCancelled = Mutex(false)
      let error = await #expect(throws: LeaseError.self) {
        try await lease(world).hold {
          if isTaken { try await world.lease("work") } else { try await document(world).delete() }
          await world.clock.waitForSleepers()
          world.clock.advance(by: .seconds(4))
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
      let left = try await document(world).get()
      #expect(left["run"] == (isTaken ? .string("other") : nil))
    }
  }

  @Test("A renewal that fails is made again, and in time the work goes on")
  func renewedLate() async throws {
    try await withAdministration { world in
      try await lease(world).hold {
        let before = try await document(world).get()
        try await world.suite.clock.advance(by: .seconds(4))
        world.faults.decide { $0 == 1 ? .refused : .none() }
        await world.clock.waitForSleepers()
        world.clock.advance(by: .seconds(4))
        // The time limit of the renewal and the wait before the next attempt.
        await world.clock.waitForSleepers(2)
        #expect(try await document(world).get().updateTime == before.updateTime)
        world.clock.advance(by: .seconds(1))
        #expect(try await change(of: document(world), since: before.updateTime)?.exists == true)
      }
    }
  }

  @Test("Work that cannot renew its lease is cancelled before others may take it")
  func unreachable() async throws {
    try await withAdministration { world in
      let error = await #expect(throws: LeaseError.self) {
        try await lease(world).hold {
          world.faults.decide { _ in .refused }
          await world.clock.waitForSleepers()
          world.clock.advance(by: .seconds(4))
          await world.clock.waitForSleepers(2)
          world.clock.advance(by: .seconds(20))
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
    try await withAdministration { world in
      try await world.lease("work")
      try await world.suite.clock.advance(by: .seconds(age))
      if age < 30 {
        let lease = lease(world)
        #expect(await world.refusal { try await lease.hold {} } is LeaseError)
      } else {
        try await lease(world).hold {}
      }
    }
  }

  @Test("A run that waits for a dead one goes on once that one's lease is over")
  func outlived() async throws {
    try await withAdministration { world in
      try await world.lease("work")
      async let held: Void = lease(world).hold {}
      await world.clock.waitForSleepers()
      try await world.outliveLeases()
      world.clock.advance(by: .seconds(31))
      try await held
    }
  }

  @Test("Whatever stands in a lease, it holds up others for its time and no longer")
  func malformed() async throws {
    try await withAdministration { world in
      try await world.lease("work", of: 7)
      let other = lease(world)
      #expect(await world.refusal { try await other.hold {} } is LeaseError)

      try await world.outliveLeases()
      try await lease(world).hold {}
    }
  }

  @Test("A run that waits begins as soon as the other gives the lease back")
  func waits() async throws {
    try await withAdministration { world in
      let order = Order()
      let other = lease(world)
      let waiting = try await lease(world).hold {
        let waiting = Task { try await other.hold { order.add("second") } }
        // One task renews the lease and the other one waits.
        await world.clock.waitForSleepers(2)
        order.add("first")
        return waiting
      }
      try await waiting.value
      #expect(order.all == ["first", "second"])
    }
  }
}
