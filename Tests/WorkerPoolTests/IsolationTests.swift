import FlowControl
import Manifests
import Testing

@testable import WorkerPool

/// The isolation of invocations that may have crashed a worker.
@Suite("Isolated invocations")
struct IsolationTests {
  typealias ID = FunctionScheduler.InvocationID
  typealias Worker = FunctionScheduler.WorkerID
  typealias Action = FunctionScheduler.Action

  private func id(_ number: UInt64) -> ID { ID(number: number) }
  private func worker(_ number: Int) -> Worker { Worker(number: number) }

  /// A scheduler whose worker 1 is ready.
  private func ready(concurrency: Int, max instancesMax: Int) -> FunctionScheduler {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.concurrency = concurrency
    endpoint.maxInstances = instancesMax
    let backOff = BackOff(initial: .milliseconds(100), maximum: .seconds(10))
    var scheduler = FunctionScheduler(
      limits: .init(endpoint, WorkerFleet.Configuration(restartBackOff: backOff))
    )
    _ = scheduler.warmUp(now: .zero)
    _ = scheduler.workerStarted(worker(1), now: .zero)
    return scheduler
  }

  private func submit(
    _ scheduler: inout FunctionScheduler,
    _ number: UInt64,
    isolated: Bool = false,
    at now: Duration = .zero
  ) -> [Action] {
    scheduler.submit(id(number), timeout: .seconds(60), runsIsolated: isolated, now: now)
  }

  @Test("The error of a crash says whether the invocation was alone in its worker")
  func shared() {
    var alone = ready(concurrency: 2, max: 1)
    _ = submit(&alone, 1)
    _ = alone.ended(id(1), now: .zero)
    _ = submit(&alone, 2)
    #expect(
      alone.workerExited(worker(1), detail: "trap", now: .zero) == [
        .fail(id(2), .crashed("trap", isShared: false))
      ]
    )

    var lingering = ready(concurrency: 2, max: 1)
    _ = submit(&lingering, 1)
    _ = submit(&lingering, 2)
    _ = lingering.cancelled(id(1), now: .zero)
    #expect(
      lingering.workerExited(worker(1), detail: "trap", now: .zero) == [
        .fail(id(2), .crashed("trap", isShared: true))
      ],
      "One whose caller has gone may still be at fault"
    )
  }

  @Test("Who leaves between the first broken connection and the exit leaves the others suspects")
  func leftInBetween() {
    var scheduler = ready(concurrency: 2, max: 1)
    _ = submit(&scheduler, 1)
    _ = submit(&scheduler, 2)
    _ = scheduler.broke(id(1), now: .zero)
    _ = scheduler.cancelled(id(1), now: .zero)
    _ = scheduler.broke(id(2), now: .zero)

    #expect(
      scheduler.workerExited(worker(1), detail: "trap", now: .zero) == [
        .fail(id(2), .crashed("trap", isShared: true))
      ]
    )
  }

  @Test("Who answers between the kill for memory and the exit leaves the others suspects")
  func answeredInBetween() {
    var scheduler = ready(concurrency: 2, max: 1)
    _ = submit(&scheduler, 1)
    _ = submit(&scheduler, 2)
    _ = scheduler.workerTooLarge(worker(1), now: .zero)
    _ = scheduler.ended(id(1), now: .zero)

    #expect(
      scheduler.workerExited(worker(1), detail: "it used much", now: .zero).first
        == .fail(id(2), .crashed("it used much", isShared: true))
    )
  }

  @Test("A request that never reached the worker is no suspect")
  func notSentIsNoSuspect() {
    var scheduler = ready(concurrency: 2, max: 1)
    _ = submit(&scheduler, 1)
    _ = submit(&scheduler, 2)
    _ = scheduler.notSent(id(2), now: .zero)
    _ = scheduler.broke(id(1), now: .zero)

    #expect(
      scheduler.workerExited(worker(1), detail: "trap", now: .zero).first
        == .fail(id(1), .crashed("trap", isShared: false))
    )
  }

  @Test("One whose connection broke is at fault if the worker lives on, but not one of several")
  func brokenInLivingWorker() {
    for count in 1...2 {
      var scheduler = ready(concurrency: 3, max: 1)
      for number in 1...UInt64(3) { _ = submit(&scheduler, number) }
      for number in 1...UInt64(count) { _ = scheduler.broke(id(number), now: .zero) }

      let failures = scheduler.workerReady(worker(1), now: .zero)
      let detail = "its worker closed the connection"
      #expect(failures.count == count)
      #expect(failures.contains(.fail(id(1), .crashed(detail, isShared: count > 1))))
    }
  }

  @Test("An isolated one takes an idle worker, which takes nothing else until it has ended")
  func reserves() {
    var scheduler = ready(concurrency: 80, max: 2)

    #expect(submit(&scheduler, 1, isolated: true) == [.run(id(1), on: worker(1))])
    #expect(submit(&scheduler, 2) == [.start(worker(2))])
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(2), on: worker(2))])
    #expect(submit(&scheduler, 3) == [.run(id(3), on: worker(2))])
    #expect(scheduler.ended(id(1), now: .zero) == [])
    #expect(submit(&scheduler, 4) == [.run(id(4), on: worker(1))])
  }

  @Test("A caller that leaves does not free the reserved worker before its handler has stopped")
  func reservedWhileLingering() {
    var scheduler = ready(concurrency: 80, max: 1)
    _ = submit(&scheduler, 1, isolated: true)

    #expect(scheduler.cancelled(id(1), now: .zero) == [.cancel(id(1))])
    #expect(submit(&scheduler, 2) == [.start(worker(2))])
    #expect(scheduler.ended(id(1), now: .zero).first == .check(worker(1)))
    #expect(scheduler.workerReady(worker(1), now: .zero).first == .run(id(2), on: worker(1)))
  }

  @Test(
    "Beside busy workers one more starts, only for isolated ones, and goes with the last of them",
    arguments: [1, 80]
  )
  func oneMore(concurrency: Int) {
    var scheduler = ready(concurrency: concurrency, max: 1)
    _ = submit(&scheduler, 1)

    #expect(submit(&scheduler, 2, isolated: true) == [.start(worker(2))])
    #expect(submit(&scheduler, 3, isolated: true) == [])
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(2), on: worker(2))])
    for number in 4...UInt64(3 + concurrency) { _ = submit(&scheduler, number) }
    #expect(scheduler.waitingCount == 2, "The last ordinary one, and the second isolated one")
    #expect(scheduler.ended(id(2), now: .zero) == [.run(id(3), on: worker(2))])
    #expect(scheduler.ended(id(3), now: .zero) == [.terminate(worker(2))])
    #expect(
      scheduler.ended(id(1), now: .zero) == [
        .run(id(UInt64(3 + concurrency)), on: worker(1))
      ]
    )
  }

  @Test("While the only worker is reserved, ordinary ones get one more, and one stays in the end")
  func oneMoreForOthers() {
    var scheduler = ready(concurrency: 1, max: 1)
    _ = submit(&scheduler, 1, isolated: true)

    #expect(submit(&scheduler, 2) == [.start(worker(2))])
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(2), on: worker(2))])
    #expect(submit(&scheduler, 3) == [])
    #expect(scheduler.ended(id(1), now: .zero) == [.terminate(worker(1))])
    #expect(scheduler.ended(id(2), now: .zero) == [.run(id(3), on: worker(2))])
  }

  @Test("Of the two kinds the older runs first where both could")
  func order() {
    var scheduler = ready(concurrency: 1, max: 1)
    _ = scheduler.yieldWorker(mayBeBusy: false, now: .zero)
    _ = scheduler.workerExited(worker(1), detail: "it exited", now: .zero)
    _ = submit(&scheduler, 1)
    _ = submit(&scheduler, 2, isolated: true)
    _ = submit(&scheduler, 3)
    _ = submit(&scheduler, 4, isolated: true)

    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(1), on: worker(2))])
    for number in 2...UInt64(4) {
      #expect(
        scheduler.ended(id(number - 1), now: .zero).first == .run(id(number), on: worker(2))
      )
    }
  }

  @Test("All of a function's workers may be reserved, and one more starts for the others")
  func allReserved() {
    var scheduler = ready(concurrency: 80, max: 4)
    for number in 1...UInt64(6) { _ = submit(&scheduler, number, isolated: true) }
    for number in 2...4 { _ = scheduler.workerStarted(worker(number), now: .zero) }

    #expect(scheduler.workers.tally.reserved == 4)
    #expect(scheduler.workers.tally.all == 4)
    #expect(scheduler.limits.isolatedMax == FunctionEndpoint.isolatedMax(instances: 4))
    #expect(submit(&scheduler, 7) == [.start(worker(5))])
    #expect(scheduler.workerStarted(worker(5), now: .zero) == [.run(id(7), on: worker(5))])
  }

  @Test("The death of a reserved worker holds up isolated ones, and no ordinary one")
  func separatePauses() {
    var scheduler = ready(concurrency: 1, max: 1)
    _ = submit(&scheduler, 1, isolated: true)
    _ = submit(&scheduler, 2, isolated: true)

    #expect(
      scheduler.workerExited(worker(1), detail: "trap", now: .zero) == [
        .fail(id(1), .crashed("trap", isShared: false))
      ]
    )
    #expect(scheduler.wake.map { $0 <= .milliseconds(100) } ?? false)
    #expect(submit(&scheduler, 3) == [.start(worker(2))])
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(3), on: worker(2))])
    #expect(scheduler.ended(id(3), now: .zero) == [], "The poisonous may not have it yet")
    #expect(
      scheduler.advance(to: .milliseconds(100)) == [.run(id(2), on: worker(2))]
    )
    _ = scheduler.workerExited(worker(2), detail: "trap", now: .milliseconds(100))
    _ = submit(&scheduler, 4, isolated: true, at: .milliseconds(100))
    #expect(scheduler.advance(to: .milliseconds(299)) == [])
    #expect(scheduler.advance(to: .milliseconds(300)) == [.start(worker(3))])
    _ = scheduler.workerStarted(worker(3), now: .milliseconds(300))
    _ = scheduler.ended(id(4), now: .milliseconds(300))
    _ = submit(&scheduler, 5, isolated: true, at: .milliseconds(300))
    _ = scheduler.workerExited(worker(3), detail: "trap", now: .milliseconds(300))
    _ = submit(&scheduler, 6, isolated: true, at: .milliseconds(300))
    #expect(
      scheduler.advance(to: .milliseconds(400)) == [.start(worker(4))],
      "After a success the wait is short again"
    )
  }

  @Test("A reserved worker killed for its memory or its silence holds up no ordinary one either")
  func killedReserved() {
    var large = ready(concurrency: 1, max: 2)
    _ = submit(&large, 1, isolated: true)
    _ = large.workerTooLarge(worker(1), now: .zero)
    #expect(submit(&large, 2) == [.start(worker(2))])

    var silent = ready(concurrency: 1, max: 2)
    _ = submit(&silent, 1, isolated: true)
    _ = silent.broke(id(1), now: .zero)
    _ = silent.cancelled(id(1), now: .zero)
    #expect(silent.advance(to: .seconds(30)) == [.kill(worker(1), .silent)])
    #expect(submit(&silent, 2, at: .seconds(30)) == [.start(worker(2))])
  }

  @Test("The death of an ordinary worker holds up ordinary invocations, and no isolated one")
  func ordinaryPause() {
    var scheduler = ready(concurrency: 1, max: 2)
    _ = submit(&scheduler, 1)
    _ = scheduler.workerExited(worker(1), detail: "trap", now: .zero)

    #expect(submit(&scheduler, 2) == [])
    #expect(submit(&scheduler, 3, isolated: true) == [.start(worker(2))])
    // The worker is for the newer invocation, although the older one waits too.
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(3), on: worker(2))])
    #expect(scheduler.advance(to: .milliseconds(100)) == [.start(worker(3))])
  }
}
