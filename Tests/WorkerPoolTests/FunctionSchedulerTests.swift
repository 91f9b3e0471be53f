import FlowControl
import Manifests
import Testing

@testable import WorkerPool

@Suite("Function scheduler")
struct FunctionSchedulerTests {
  typealias ID = FunctionScheduler.InvocationID
  typealias Worker = FunctionScheduler.WorkerID

  private func scheduler(
    concurrency: Int = 1,
    min instancesMin: Int = 0,
    max instancesMax: Int = 1,
    queueMax: Int = 10,
    isTask: Bool = false
  ) -> FunctionScheduler {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    if isTask { endpoint.taskQueueTrigger = .init() }
    endpoint.concurrency = concurrency
    endpoint.minInstances = instancesMin
    endpoint.maxInstances = instancesMax
    return FunctionScheduler(
      limits: FunctionScheduler.Limits(
        endpoint,
        WorkerFleet.Configuration(
          queueMax: queueMax,
          startTimeout: .seconds(10),
          cancelGrace: .seconds(2),
          terminateGrace: .seconds(3),
          idleTimeout: .seconds(900),
          restartBackOff: BackOff(initial: .milliseconds(100), maximum: .seconds(10))
        )
      )
    )
  }

  private func id(_ number: UInt64) -> ID { ID(number: number) }
  private func worker(_ number: Int) -> Worker { Worker(number: number) }

  /// A scheduler whose worker 1 is ready.
  private func ready(
    concurrency: Int = 1,
    max instancesMax: Int = 1,
    queueMax: Int = 10
  ) -> FunctionScheduler {
    var scheduler = scheduler(concurrency: concurrency, max: instancesMax, queueMax: queueMax)
    _ = scheduler.warmUp(now: .zero)
    _ = scheduler.workerStarted(worker(1), now: .zero)
    return scheduler
  }

  @Test("The first invocation starts a worker and runs once it is ready")
  func firstInvocation() {
    var scheduler = scheduler()

    #expect(scheduler.submit(id(1), timeout: .seconds(60), now: .zero) == [.start(worker(1))])
    #expect(
      scheduler.workerStarted(worker(1), now: .milliseconds(5)) == [.run(id(1), on: worker(1))]
    )
    #expect(scheduler.runningCount == 1)
  }

  @Test("A worker takes as many invocations as its concurrency, the next waits for a free place")
  func concurrency() {
    var scheduler = ready(concurrency: 2)

    #expect(
      scheduler.submit(id(1), timeout: .seconds(60), now: .zero) == [.run(id(1), on: worker(1))]
    )
    #expect(
      scheduler.submit(id(2), timeout: .seconds(60), now: .zero) == [.run(id(2), on: worker(1))]
    )
    #expect(scheduler.submit(id(3), timeout: .seconds(60), now: .zero) == [])
    #expect(scheduler.ended(id(1), now: .zero) == [.run(id(3), on: worker(1))])
  }

  @Test("More workers start while invocations wait, up to the maximum")
  func scaleOut() {
    var scheduler = ready(concurrency: 1, max: 2)

    #expect(
      scheduler.submit(id(1), timeout: .seconds(60), now: .zero) == [.run(id(1), on: worker(1))]
    )
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .zero) == [.start(worker(2))])
    #expect(scheduler.submit(id(3), timeout: .seconds(60), now: .zero) == [])
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(2), on: worker(2))])
    #expect(scheduler.ended(id(1), now: .zero) == [.run(id(3), on: worker(1))])
  }

  @Test("Past the bound of the queue an invocation is refused, and those who wait keep their order")
  func overloaded() {
    var scheduler = ready(queueMax: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(3), timeout: .seconds(60), now: .zero)

    #expect(
      scheduler.submit(id(4), timeout: .seconds(60), now: .zero) == [.fail(id(4), .overloaded)]
    )
    #expect(scheduler.ended(id(1), now: .zero) == [.run(id(2), on: worker(1))])
    #expect(scheduler.ended(id(2), now: .zero) == [.run(id(3), on: worker(1))])
  }

  @Test("What waits is bounded in bytes, too")
  func overloadedBytes() {
    var scheduler = ready()
    func submit(_ number: UInt64, mebibytes: Int) -> [FunctionScheduler.Action] {
      scheduler.submit(id(number), bytes: mebibytes << 20, timeout: .seconds(60), now: .zero)
    }

    #expect(submit(1, mebibytes: 100) == [.run(id(1), on: worker(1))])
    #expect(submit(2, mebibytes: 60) == [])
    #expect(submit(3, mebibytes: 5) == [.fail(id(3), .overloaded)])
    #expect(submit(4, mebibytes: 4) == [])
    #expect(scheduler.cancelled(id(2), now: .zero) == [])
    #expect(submit(5, mebibytes: 60) == [])
  }

  @Test("A place for another function is given by an idle worker, else by a busy one that is done")
  func yields() {
    var scheduler = ready(max: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)
    _ = scheduler.workerStarted(worker(2), now: .zero)

    #expect(scheduler.yieldWorker(mayBeBusy: false, now: .zero).0 == nil)
    let yielded = scheduler.yieldWorker(mayBeBusy: true, now: .zero).0
    #expect(yielded != nil)
    #expect(scheduler.yieldWorker(mayBeBusy: true, now: .zero).0 == nil, "One always stays")
    let (done, other) = yielded == worker(1) ? (id(1), id(2)) : (id(2), id(1))
    #expect(scheduler.ended(done, now: .zero) == yielded.map { [.terminate($0)] })
    _ = scheduler.ended(other, now: .zero)
    #expect(scheduler.yieldWorker(mayBeBusy: false, now: .zero).0 != nil)
  }

  @Test("A worker past its memory is killed at once, and the next one waits a while")
  func tooLarge() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)

    #expect(scheduler.workerTooLarge(worker(1), now: .zero) == [.kill(worker(1), .tooLarge)])
    #expect(scheduler.workerTooLarge(worker(1), now: .zero) == [])
    #expect(
      scheduler.workerExited(worker(1), detail: "it used much", now: .zero) == [
        .fail(id(1), .crashed("it used much", isShared: false))
      ]
    )
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .zero) == [])
    #expect(scheduler.advance(to: .milliseconds(100)) == [.start(worker(2))])
  }

  @Test("An invocation may wait for as long as it may run, and then has all its time")
  func waitingTimesOut() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(3), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(3), now: .zero)

    #expect(
      scheduler.workerStarted(worker(1), now: .milliseconds(2_500)) == [
        .run(id(1), on: worker(1))
      ]
    )
    #expect(scheduler.advance(to: .milliseconds(2_999)) == [])
    #expect(scheduler.advance(to: .seconds(3)) == [.fail(id(2), .waitTimedOut)])
    #expect(scheduler.wake == .milliseconds(5_500))
    #expect(
      scheduler.advance(to: .milliseconds(5_500)) == [.fail(id(1), .timedOut), .cancel(id(1))]
    )
  }

  @Test("What comes from the event log waits for as long as the pool says, however short its run")
  func waitingEvent() {
    var scheduler = scheduler(isTask: true)
    _ = scheduler.submit(id(1), timeout: .seconds(5), now: .zero)

    #expect(scheduler.advance(to: .milliseconds(59_999)) == [])
    #expect(
      scheduler.advance(to: .seconds(60)) == [.fail(id(1), .waitTimedOut), .terminate(worker(1))]
    )
  }

  @Test("Without a place for the first worker the wait is short, and ends when there is one")
  func placeless() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    scheduler.placeMissing(now: .seconds(1))
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .seconds(5))
    _ = scheduler.submit(id(3), timeout: .seconds(2), now: .seconds(5))

    #expect(scheduler.advance(to: .seconds(7)) == [.fail(id(3), .placeless)])
    let actions = scheduler.advance(to: .seconds(11))
    #expect(actions == [.fail(id(1), .placeless), .giveUpStart])
    scheduler.workerLaunched(worker(1), now: .seconds(14))
    #expect(scheduler.advance(to: .seconds(16)) == [], "The place came in time")
    #expect(
      scheduler.workerReady(worker(1), now: .seconds(17)) == [.run(id(2), on: worker(1))]
    )
  }

  @Test("An event without a place goes back to its queue at once, and takes its worker with it")
  func placelessEvent() {
    var scheduler = scheduler(isTask: true)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    scheduler.placeMissing(now: .zero)

    #expect(
      scheduler.advance(to: .milliseconds(250)) == [
        .fail(id(1), .placeless), .terminate(worker(1)),
      ]
    )
    _ = scheduler.workerExited(worker(1), detail: "", now: .seconds(1))
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .seconds(2)).isEmpty == false)
    #expect(scheduler.advance(to: .seconds(50)) == [], "Nobody has said that places are gone")
  }

  @Test("A worker that must wait for its place in a deployment is reported once")
  func givesUpStart() {
    var scheduler = scheduler(isTask: true)
    _ = scheduler.warmUp(now: .zero)
    scheduler.placeMissing(now: .seconds(1))
    scheduler.placeMissing(now: .seconds(9))

    #expect(scheduler.wake == .seconds(11))
    #expect(scheduler.advance(to: .seconds(11)) == [.giveUpStart])
    #expect(scheduler.wake == nil)
    #expect(scheduler.workerStarted(worker(1), now: .seconds(20)) == [], "It has kept its turn")
    #expect(scheduler.workerCounts.ready == 1)
  }

  @Test("A function with a worker is not short of a first place")
  func hasPlace() {
    var scheduler = ready(max: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(20), now: .zero)

    #expect(scheduler.advance(to: .seconds(19)) == [])
  }

  @Test("What a replaced version still runs ends when it is drained or its time is up")
  func drained() {
    for isAsked in [true, false] {
      var scheduler = ready()
      _ = scheduler.submit(id(1), timeout: .seconds(3_600), now: .zero)
      _ = scheduler.retire(drainBy: .seconds(600), now: .zero)

      #expect(scheduler.advance(to: .seconds(599)) == [])
      let end = Duration.seconds(isAsked ? 599 : 600)
      let actions = isAsked ? scheduler.drain(now: end) : scheduler.advance(to: end)
      #expect(actions == [.fail(id(1), .drained), .cancel(id(1))])
      #expect(
        scheduler.advance(to: end + .milliseconds(250)) == [.kill(worker(1), .hung)],
        "A deaf worker has the grace of a drain"
      )
    }
  }

  @Test("Only a retired version is drained")
  func serves() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)

    #expect(scheduler.drain(now: .seconds(1)) == [])
    #expect(scheduler.runningCount == 1)
  }

  @Test("The reason why no worker starts is known until one answers")
  func startFailure() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    scheduler.workerLaunched(worker(1), now: .zero)
    _ = scheduler.workerExited(worker(1), detail: "code 1", now: .zero)

    #expect(scheduler.startFailure == "code 1")
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .seconds(1))
    _ = scheduler.workerStarted(worker(2), now: .seconds(1))
    #expect(scheduler.startFailure == nil)
  }

  @Test("What waited for the version before waits on and does not begin again")
  func waitsOn() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(5), waitsUntil: .seconds(2), now: .seconds(1))

    #expect(
      scheduler.advance(to: .seconds(2)) == [.fail(id(1), .waitTimedOut), .terminate(worker(1))]
    )
  }

  @Test("A worker that stops an overdue invocation within the grace is kept")
  func timeoutStopped() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(5), now: .zero)

    #expect(scheduler.advance(to: .seconds(5)) == [.fail(id(1), .timedOut), .cancel(id(1))])
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .seconds(5)) == [])
    #expect(scheduler.ended(id(1), now: .seconds(6)) == [.check(worker(1))])
    #expect(scheduler.workerReady(worker(1), now: .seconds(6)) == [.run(id(2), on: worker(1))])
  }

  @Test("A worker whose overdue invocation hangs is ended once its others are done")
  func timeoutHangs() {
    var scheduler = ready(concurrency: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(5), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)
    _ = scheduler.advance(to: .seconds(5))

    #expect(scheduler.advance(to: .seconds(7)) == [])
    #expect(
      scheduler.submit(id(3), timeout: .seconds(60), now: .seconds(8)) == [.start(worker(2))]
    )
    #expect(scheduler.ended(id(2), now: .seconds(9)) == [.kill(worker(1), .hung)])
    #expect(scheduler.workerExited(worker(1), detail: "killed", now: .seconds(9)) == [])
    #expect(scheduler.workerStarted(worker(2), now: .seconds(9)) == [.run(id(3), on: worker(2))])
  }

  @Test("A caller that leaves frees its place in the queue, or has its invocation cancelled")
  func cancelled() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)

    #expect(scheduler.cancelled(id(2), now: .zero) == [])
    #expect(scheduler.waitingCount == 0)
    #expect(scheduler.cancelled(id(1), now: .zero) == [.cancel(id(1))])
    #expect(scheduler.runningCount == 0)
    #expect(scheduler.ended(id(1), now: .zero) == [.check(worker(1))])
    #expect(!scheduler.knows(id(1)))
  }

  @Test("After an abandoned call nothing runs on a worker that may have ended with it")
  func endsAfterLingering() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.cancelled(id(1), now: .zero)
    _ = scheduler.ended(id(1), now: .zero)
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .zero) == [])

    var dead = scheduler
    #expect(dead.workerExited(worker(1), detail: "signal 4", now: .zero) == [])
    #expect(scheduler.workerReady(worker(1), now: .zero) == [.run(id(2), on: worker(1))])
  }

  @Test("What runs in a worker that begins its crash report fails at once, and only once")
  func crashing() {
    var scheduler = ready(concurrency: 2, max: 2)
    for number in 1...2 {
      _ = scheduler.submit(id(UInt64(number)), timeout: .seconds(1), now: .zero)
    }
    let failed = scheduler.workerCrashing(worker(1), detail: "signal 4", now: .zero)
    let failure = FunctionScheduler.Failure.crashed("signal 4", isShared: true)
    #expect(failed.count == 2)
    #expect(failed.contains(.fail(id(1), failure)) && failed.contains(.fail(id(2), failure)))
    // Calls that arrive in the meantime get another worker.
    #expect(scheduler.submit(id(3), timeout: .seconds(60), now: .zero) == [])
    #expect(scheduler.advance(to: .milliseconds(100)) == [.start(worker(2))])
    #expect(scheduler.advance(to: .seconds(5)) == [])
    let actions = scheduler.workerExited(worker(1), detail: "signal 4", now: .seconds(6))
    #expect(!actions.contains { if case .fail = $0 { true } else { false } })
  }

  @Test("A crash report that never ends is ended with its worker")
  func crashesForEver() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.workerCrashing(worker(1), detail: "signal 4", now: .zero)
    #expect(scheduler.advance(to: .seconds(10)) == [.kill(worker(1), .crashing)])
  }

  @Test("A crash report that a drain cuts off is not said to have never ended")
  func crashReportDuringDrain() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.workerCrashing(worker(1), detail: "signal 11", now: .zero)
    _ = scheduler.retire(drainBy: .milliseconds(1_500), now: .zero)

    #expect(scheduler.advance(to: .milliseconds(1_500)) == [.kill(worker(1), .drained)])
  }

  @Test("A crash fails what ran there, and only that; who waited runs on the replacement")
  func crash() {
    var scheduler = ready(concurrency: 2)
    for number in 1...3 {
      _ = scheduler.submit(id(UInt64(number)), timeout: .seconds(60), now: .zero)
    }

    let actions = scheduler.workerExited(worker(1), detail: "signal 4", now: .seconds(1))
    #expect(
      Set(actions.map(String.init(describing:)))
        == Set(
          [
            FunctionScheduler.Action.fail(id(1), .crashed("signal 4", isShared: true)),
            .fail(id(2), .crashed("signal 4", isShared: true)),
          ].map(String.init(describing:))
        )
    )
    #expect(scheduler.wake.map { $0 <= .milliseconds(1_100) } ?? false)
    #expect(scheduler.advance(to: .milliseconds(1_100)) == [.start(worker(2))])
    #expect(scheduler.workerStarted(worker(2), now: .seconds(2)) == [.run(id(3), on: worker(2))])
  }

  @Test("A response that is cut is no crash if the worker lives on", arguments: [true, false])
  func cutResponse(isWell: Bool) {
    var scheduler = ready(concurrency: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)
    #expect(scheduler.broke(id(1), isStreaming: true, now: .zero) == [.check(worker(1))])
    #expect(scheduler.broke(id(2), now: .zero) == [])

    let actions =
      isWell
      ? scheduler.workerReady(worker(1), now: .zero)
      : scheduler.workerExited(worker(1), detail: "signal 5", now: .zero)
    if isWell {
      let detail = "its worker closed the connection"
      #expect(actions.count == 2)
      #expect(actions.contains(.fail(id(1), .cut)))
      #expect(actions.contains(.fail(id(2), .crashed(detail, isShared: false))))
    } else {
      #expect(actions.contains(.fail(id(1), .crashed("signal 5", isShared: true))))
      #expect(actions.contains(.fail(id(2), .crashed("signal 5", isShared: true))))
    }
  }

  @Test("A broken connection is settled by what becomes of the worker", arguments: [true, false])
  func brokenConnection(isWell: Bool) {
    var scheduler = ready(concurrency: 2)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)

    #expect(scheduler.broke(id(1), now: .seconds(1)) == [.check(worker(1))])
    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .seconds(1)) == [])
    if isWell {
      #expect(
        scheduler.workerReady(worker(1), now: .seconds(1)) == [
          .fail(id(1), .crashed("its worker closed the connection", isShared: false)),
          .run(id(2), on: worker(1)),
        ]
      )
    } else {
      #expect(
        scheduler.workerExited(worker(1), detail: "signal 5", now: .seconds(1)) == [
          .fail(id(1), .crashed("signal 5", isShared: false))
        ]
      )
      #expect(scheduler.waitingCount == 1)
    }
  }

  @Test("A request that was not sent waits at the front, and is given up after three attempts")
  func notSent() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(60), now: .zero)

    for _ in 1...2 {
      #expect(scheduler.notSent(id(1), now: .zero) == [.check(worker(1))])
      #expect(scheduler.workerReady(worker(1), now: .zero) == [.run(id(1), on: worker(1))])
    }
    #expect(
      scheduler.notSent(id(1), now: .zero) == [
        .check(worker(1)), .fail(id(1), .failed("its worker cannot be reached")),
      ]
    )
    #expect(scheduler.workerReady(worker(1), now: .zero) == [.run(id(2), on: worker(1))])
  }

  @Test("A worker that cannot start fails who waits, and the next try waits longer each time")
  func cannotStart() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    scheduler.workerLaunched(worker(1), now: .zero)
    #expect(
      scheduler.workerExited(worker(1), detail: "code 1", now: .zero) == [
        .fail(id(1), .cannotStart("code 1"))
      ]
    )

    #expect(scheduler.submit(id(2), timeout: .seconds(60), now: .zero) == [])
    #expect(scheduler.advance(to: .milliseconds(99)) == [])
    #expect(scheduler.advance(to: .milliseconds(100)) == [.start(worker(2))])
    scheduler.workerLaunched(worker(2), now: .milliseconds(100))
    _ = scheduler.workerExited(worker(2), detail: "code 1", now: .milliseconds(100))
    #expect(scheduler.submit(id(3), timeout: .seconds(60), now: .milliseconds(200)) == [])
    #expect(scheduler.advance(to: .milliseconds(300)) == [.start(worker(3))])
  }

  @Test("A worker that does not answer in time after its launch counts as one that cannot start")
  func startTimesOut() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    #expect(scheduler.advance(to: .seconds(20)) == [], "A place in the fleet is all it waits for")
    scheduler.workerLaunched(worker(1), now: .seconds(20))

    #expect(scheduler.advance(to: .milliseconds(29_999)) == [])
    #expect(
      scheduler.advance(to: .seconds(30)) == [
        .kill(worker(1), .neverReady),
        .fail(id(1), .cannotStart("it did not answer within 10.0 seconds")),
      ]
    )
    #expect(scheduler.workerExited(worker(1), detail: "signal 9", now: .seconds(30)) == [])
  }

  @Test("A worker that was never launched is not to blame, and those who wait go on waiting")
  func neverLaunched() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)

    #expect(
      scheduler.workerExited(worker(1), detail: "stopped", now: .zero) == [.start(worker(2))]
    )
    #expect(scheduler.workerStarted(worker(2), now: .zero) == [.run(id(1), on: worker(2))])
  }

  @Test(
    "A queued start without waiting invocations is cancelled while the fleet has no place for it"
  )
  func unneededStart() {
    var scheduler = ready(max: 3)
    for number in 1...3 {
      _ = scheduler.submit(id(UInt64(number)), timeout: .seconds(60), now: .zero)
    }
    scheduler.workerLaunched(worker(2), now: .zero)

    #expect(
      scheduler.ended(id(1), now: .zero) == [.run(id(2), on: worker(1)), .terminate(worker(3))]
    )
    #expect(scheduler.ended(id(2), now: .zero) == [.run(id(3), on: worker(1))])
    #expect(scheduler.workerReady(worker(2), now: .zero) == [], "It starts already, so it stays")
  }

  @Test("A failed start takes back the starts that wait, so that it holds up no other function")
  func failedStarts() {
    var scheduler = scheduler(max: 3)
    for number in 1...3 {
      _ = scheduler.submit(id(UInt64(number)), timeout: .seconds(60), now: .zero)
    }
    scheduler.workerLaunched(worker(1), now: .zero)

    let actions = scheduler.workerExited(worker(1), detail: "trap", now: .zero)
    #expect(actions.prefix(2) == [.terminate(worker(3)), .terminate(worker(2))])
    #expect(
      actions.dropFirst(2) == [
        .fail(id(1), .cannotStart("trap")), .fail(id(2), .cannotStart("trap")),
        .fail(id(3), .cannotStart("trap")),
      ]
    )
  }

  @Test(
    "A retired version finishes running invocations, returns waiting ones and releases its worker"
  )
  func retire() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.submit(id(2), timeout: .seconds(61), now: .zero)

    let (left, actions) = scheduler.retire(now: .zero)
    #expect(left == [FunctionScheduler.Waiting(id: id(2), waitsUntil: .seconds(61))])
    #expect(actions == [])
    #expect(scheduler.submit(id(3), timeout: .seconds(60), now: .zero) == [.fail(id(3), .drained)])
    #expect(!scheduler.isFinished)
    #expect(scheduler.ended(id(1), now: .seconds(1)) == [.terminate(worker(1))])
    #expect(scheduler.advance(to: .seconds(4)) == [.kill(worker(1), .staying)])
    #expect(scheduler.workerExited(worker(1), detail: "it exited", now: .seconds(4)) == [])
    #expect(scheduler.isFinished)
  }

  @Test("A retired version takes back the start that waits for a place")
  func retireQueued() {
    var scheduler = scheduler()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)

    #expect(scheduler.retire(now: .zero).1 == [.terminate(worker(1))])
    #expect(scheduler.workerExited(worker(1), detail: "not needed", now: .zero) == [])
    #expect(scheduler.isFinished)
  }

  @Test("An idle worker that makes room has no more than a short grace, however long others have")
  func yieldGrace() {
    var scheduler = ready()

    #expect(scheduler.yieldWorker(mayBeBusy: false, now: .zero).1 == [.terminate(worker(1))])
    #expect(scheduler.advance(to: .milliseconds(249)) == [])
    #expect(scheduler.advance(to: .milliseconds(250)) == [.kill(worker(1), .staying)])
  }

  @Test("A drain ends what still runs when its time is up")
  func drain() {
    var scheduler = ready()
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.retire(drainBy: .milliseconds(1_500), now: .zero)

    #expect(
      scheduler.advance(to: .milliseconds(1_500)) == [.fail(id(1), .drained), .cancel(id(1))]
    )
    #expect(scheduler.ended(id(1), now: .milliseconds(1_600)) == [.terminate(worker(1))])
  }

  @Test("After a drain nothing has its whole grace: neither a mute worker nor one that stays")
  func drainedGraces() {
    var mute = ready()
    _ = mute.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = mute.broke(id(1), now: .zero)
    _ = mute.retire(drainBy: .milliseconds(1_500), now: .zero)
    #expect(
      mute.advance(to: .milliseconds(1_500)) == [
        .fail(id(1), .drained), .kill(worker(1), .drained),
      ]
    )

    var staying = ready()
    #expect(
      staying.retire(drainBy: .milliseconds(1_500), now: .zero).1 == [.terminate(worker(1))]
    )
    #expect(staying.advance(to: .milliseconds(1_749)) == [])
    #expect(staying.advance(to: .milliseconds(1_750)) == [.kill(worker(1), .staying)])

    var lingering = ready()
    _ = lingering.submit(id(1), timeout: .seconds(1), now: .zero)
    _ = lingering.advance(to: .seconds(1))
    _ = lingering.retire(drainBy: .milliseconds(1_500), now: .seconds(1))
    #expect(lingering.advance(to: .milliseconds(1_750)) == [.kill(worker(1), .hung)])
  }

  @Test("An idle worker goes after a while unless it is one of the minimum", arguments: [0, 1])
  func idle(instancesMin: Int) {
    var scheduler = scheduler(min: instancesMin)
    _ = scheduler.submit(id(1), timeout: .seconds(60), now: .zero)
    _ = scheduler.workerStarted(worker(1), now: .zero)
    _ = scheduler.ended(id(1), now: .seconds(30))
    _ = scheduler.advance(to: .seconds(60))

    #expect(
      scheduler.advance(to: .seconds(930)) == (instancesMin == 0 ? [.terminate(worker(1))] : [])
    )
  }

  @Test("Of several idle workers the one idle longest goes, and those of the minimum stay")
  func idleBeyondMinimum() {
    var scheduler = scheduler(min: 1, max: 2)
    for number in 1...UInt64(2) {
      _ = scheduler.submit(id(number), timeout: .seconds(60), now: .zero)
      _ = scheduler.workerStarted(worker(Int(number)), now: .zero)
    }
    _ = scheduler.ended(id(2), now: .seconds(1))
    _ = scheduler.ended(id(1), now: .seconds(2))

    #expect(scheduler.advance(to: .seconds(2_000)) == [.terminate(worker(2))])
  }

  @Test("Whatever happens, each invocation ends once and no worker gets more than it takes")
  func random() {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededChoice(state: seed)
    var scheduler = scheduler(concurrency: 2, max: 3, queueMax: 5)
    var now = Duration.zero
    var open: Set<ID> = []
    var runningOn: [ID: Worker] = [:]
    var apart: Set<ID> = []
    var alive: Set<Worker> = []
    var next: UInt64 = 0

    func apply(_ actions: [FunctionScheduler.Action]) {
      for action in actions {
        switch action {
        case .start(let worker): alive.insert(worker)
        case .check, .terminate, .kill, .cancel, .giveUpStart: break
        case .run(let id, on: let worker):
          #expect(open.contains(id), "seed \(seed)")
          runningOn[id] = worker
          let here = runningOn.filter { $0.value == worker }.keys
          #expect(here.count <= 2, "seed \(seed)")
          #expect(here.count == 1 || apart.isDisjoint(with: here), "seed \(seed)")
        case .fail(let id, _): #expect(open.remove(id) != nil, "seed \(seed)")
        }
      }
      runningOn = runningOn.filter { scheduler.knows($0.key) }
    }
    for _ in 0..<3_000 {
      #expect(scheduler.workers.tally.all <= 4, "seed \(seed)")
      now += .milliseconds(Int.random(in: 0...300, using: &generator))
      switch Int.random(in: 0..<8, using: &generator) {
      case 0, 1, 2:
        next += 1
        open.insert(ID(number: next))
        let runsIsolated = Int.random(in: 0..<4, using: &generator) == 0
        if runsIsolated { apart.insert(ID(number: next)) }
        apply(
          scheduler.submit(
            ID(number: next),
            timeout: .seconds(5),
            runsIsolated: runsIsolated,
            now: now
          )
        )
      case 3:
        guard let id = runningOn.keys.min(by: { $0.number < $1.number }) else { continue }
        open.remove(id)
        runningOn[id] = nil
        apply(scheduler.ended(id, now: now))
      case 4:
        guard let worker = alive.randomElement(using: &generator) else { continue }
        scheduler.workerLaunched(worker, now: now)
        apply(scheduler.workerReady(worker, now: now))
      case 5:
        guard let worker = alive.randomElement(using: &generator) else { continue }
        alive.remove(worker)
        apply(scheduler.workerExited(worker, detail: "x", now: now))
      case 6:
        guard let id = runningOn.keys.randomElement(using: &generator) else { continue }
        runningOn[id] = nil
        apply(
          Bool.random(using: &generator)
            ? scheduler.broke(id, now: now) : scheduler.notSent(id, now: now)
        )
      default: apply(scheduler.advance(to: now))
      }
    }
    let (left, actions) = scheduler.retire(drainBy: now, now: now)
    for waiting in left { open.remove(waiting.id) }
    apply(actions)
    apply(scheduler.advance(to: now))
    for worker in alive { apply(scheduler.workerExited(worker, detail: "end", now: now)) }
    #expect(open.isEmpty, "seed \(seed)")
    #expect(scheduler.isFinished, "seed \(seed)")
  }
}

extension FunctionScheduler {
  /// Launches a worker and reports it ready at once.
  mutating func workerStarted(_ id: WorkerID, now: Duration) -> [Action] {
    workerLaunched(id, now: now)
    return workerReady(id, now: now)
  }
}

/// A small random number generator whose seed reproduces its numbers.
private struct SeededChoice: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
