import DocumentModel
import Events
import FlowControl
import Identity
import Invocation
import Manifests
import Testing
import TriggerDelivery

@Suite("Delivery policy")
struct DeliveryPolicyTests {
  private let policy = DeliveryPolicy(crashesMax: 3)
  private let retrying = DeliveryRetries(
    attemptsMax: 4,
    window: .seconds(3600),
    backOff: BackOff(initial: .seconds(1), maximum: .seconds(60), doublings: 16)
  )
  private let now = Timestamp(microseconds: 1_000_000_000)

  private func settle(
    _ delivery: Delivery,
    _ outcome: DeliveryPolicy.Outcome,
    _ retry: DeliveryRetries,
    at time: Timestamp? = nil
  ) -> Delivery {
    policy.settle(delivery, outcome, retry: retry, start: time ?? now, now: time ?? now)
  }

  private func failed(
    _ advice: RetryAdvice? = nil,
    status: Int = 500
  ) -> DeliveryPolicy.Outcome { .handlerFailed("no", status: status, advice: advice) }

  private func task(due: Timestamp) -> Delivery {
    Delivery(
      id: DeliveryID(sequence: 1, changeIndex: 0, function: "queue"),
      event: DeliveryEvent(
        content: .occurrence(
          .task(EnqueuedTask(id: "t", queue: "queue", body: [], scheduleTime: due))
        ),
        commitTime: now,
        auth: .admin
      )
    )
  }

  @Test("Success settles")
  func success() {
    let settled = settle(.sample(at: now), .succeeded(status: 204), retrying)

    #expect(settled.state == .succeeded)
    #expect(settled.attempts == 1)
    #expect(settled.settledTime == now)
  }

  @Test("A failing handler without retries fails at once and keeps the reason")
  func failureWithoutRetries() {
    let settled = settle(.sample(at: now), failed(), DeliveryRetries())

    #expect(settled.state == .failed)
    #expect(settled.lastError == "no")
  }

  @Test("Each failure of a retrying function doubles the wait, until the attempts are used up")
  func backOff() {
    var delivery = Delivery.sample(at: now)
    var waits: [Duration] = []
    while !delivery.state.isSettled {
      delivery = settle(delivery, failed(), retrying)
      if !delivery.state.isSettled { waits.append(delivery.dueTime.duration(since: now)) }
    }

    #expect(waits == [.seconds(1), .seconds(2), .seconds(4)])
    #expect(delivery.state == .dead)
    #expect(delivery.attempts == 4)
  }

  @Test("After the doublings the wait grows by the last, up to the longest, as Cloud Tasks' does")
  func doublings() {
    let policy = DeliveryRetries(
      attemptsMax: nil,
      backOff: BackOff(initial: .seconds(10), maximum: .seconds(300), doublings: 3)
    )

    let waits = (1...9).map { policy.backOff.delay(afterFailures: $0) / .seconds(1) }
    #expect(waits == [10, 20, 40, 80, 160, 240, 300, 300, 300])
  }

  @Test("Past the window a retrying function's event is dead")
  func window() {
    let late = now.advanced(by: .seconds(3600))

    #expect(settle(.sample(at: now), failed(), retrying, at: late).state == .dead)
  }

  @Test("The events of a day are tried until the day is over, as in production")
  func day() {
    var delivery = Delivery.sample(at: now)
    var time = now
    while !delivery.state.isSettled {
      delivery = settle(delivery, failed(), .events, at: time)
      time = max(time, delivery.dueTime)
    }

    #expect(delivery.state == .dead)
    // Delays from 1 s to 512 s, then 600 s each.
    #expect(delivery.attempts == 153)
    #expect(time.duration(since: now) <= .seconds(86_400))
    #expect(time.duration(since: now) > .seconds(86_400 - 600))
  }

  /// Returns the first `count` waits between attempts.
  private func waits(_ advice: RetryAdvice, _ retry: DeliveryRetries, count: Int) -> [Duration] {
    var delivery = Delivery.sample(at: now)
    var time = now
    return (0..<count).map { _ in
      delivery = settle(delivery, failed(advice), retry, at: time)
      let wait = delivery.dueTime.duration(since: time)
      time = delivery.dueTime
      return wait
    }
  }

  @Test("Advice after which to try is a minimum of the growing wait")
  func minimalAdvice() {
    let seconds = waits(.after(seconds: 3), .events, count: 5).map { $0 / .seconds(1) }

    #expect(seconds == [3, 3, 4, 8, 16])
    #expect(waits(.after(seconds: 0), .events, count: 2) == [.seconds(1), .seconds(2)])
  }

  @Test("A day of advice to try again in a second costs no more tries than no advice")
  func adviceForADay() {
    var delivery = Delivery.sample(at: now)
    var time = now
    while !delivery.state.isSettled {
      delivery = settle(delivery, failed(.after(seconds: 1)), .events, at: time)
      time = max(time, delivery.dueTime)
    }

    #expect(delivery.attempts == 153)
  }

  @Test("Exact advice takes the place of the growing wait, from a second to a day")
  func exactAdvice() {
    #expect(
      waits(.exactlyAfter(seconds: 3), .events, count: 4) == Array(repeating: .seconds(3), count: 4)
    )
    #expect(waits(.exactlyAfter(seconds: 0.01), .events, count: 1) == [.seconds(1)])
    var unbounded = DeliveryRetries.events
    unbounded.window = nil
    #expect(waits(.exactlyAfter(seconds: 1e12), unbounded, count: 1) == [.seconds(86_400)])
    #expect(waits(.after(seconds: 1e12), unbounded, count: 1) == [.seconds(86_400)])
  }

  @Test("Advice beyond the window's end leaves a last try at that end", arguments: [true, false])
  func adviceBeyondWindow(isExact: Bool) {
    let advice: RetryAdvice =
      isExact ? .exactlyAfter(seconds: 86_400) : .after(seconds: 86_400)
    let later = now.advanced(by: .seconds(100))
    let delivery = settle(.sample(at: now), failed(advice), retrying, at: later)

    #expect(delivery.state == .pending)
    #expect(delivery.dueTime == now.advanced(by: .seconds(3600)))
    #expect(settle(delivery, failed(advice), retrying, at: delivery.dueTime).state == .dead)
  }

  @Test("Advice adds no attempts, and never means never")
  func adviceAndAttempts() {
    var used = Delivery.sample(at: now)
    used.attempts = 3
    #expect(settle(used, failed(.exactlyAfter(seconds: 3)), retrying).state == .dead)
    #expect(
      settle(.sample(at: now), failed(.after(seconds: 3)), DeliveryRetries()).state == .failed
    )
    #expect(settle(.sample(at: now), failed(.never), retrying).state == .dead)
    #expect(settle(.sample(at: now), failed(.never), DeliveryRetries()).state == .failed)
  }

  @Test("Three crashes in a row are death, with or without retries", arguments: [true, false])
  func crashes(retries: Bool) {
    var delivery = Delivery.sample(at: now)
    for _ in 0..<2 {
      delivery = settle(delivery, .crashed("gone"), retries ? retrying : DeliveryRetries())
      #expect(delivery.state == .pending)
    }
    delivery = settle(delivery, .crashed("gone"), retries ? retrying : DeliveryRetries())

    #expect(delivery.state == .dead)
    #expect(delivery.attempts == 0)
  }

  @Test("An answer between crashes restarts their count")
  func crashesInterrupted() {
    var delivery = Delivery.sample(at: now)
    let outcomes = [.crashed("gone"), .crashed("gone"), failed(), .crashed("gone")]
    for outcome in outcomes { delivery = settle(delivery, outcome, retrying) }

    #expect(delivery.state == .pending)
  }

  @Test("Time that ran out between crashes does not restart their count")
  func timeOutBetweenCrashes() {
    var delivery = Delivery.sample(at: now)
    for outcome in [.crashed("signal 4"), .timedOut("late"), .crashed("signal 4")]
      as [DeliveryPolicy.Outcome]
    {
      delivery = settle(delivery, outcome, retrying)
      #expect(delivery.state == .pending)
    }
    #expect(delivery.crashes == 2 && delivery.attempts == 1)
    #expect(settle(delivery, .crashed("signal 4"), retrying).state == .dead)
  }

  @Test("What was put off is tried again and not counted")
  func putOff() {
    let settled = settle(.sample(at: now), .putOff("dropped"), DeliveryRetries())

    #expect(settled.state == .pending)
    #expect(settled.attempts == 0 && settled.crashes == 0)
    #expect(settled.dueTime > now)
  }

  @Test("A task has as many attempts as it says, crashes included", arguments: 1...5)
  func taskAttempts(count: Int) {
    var policy = DeliveryRetries.tasks
    policy.attemptsMax = count
    var delivery = task(due: now)
    var tries = 0
    while !delivery.state.isSettled {
      tries += 1
      delivery = settle(delivery, tries.isMultiple(of: 2) ? .crashed("gone") : failed(), policy)
    }

    #expect(tries == count)
    #expect(delivery.attempts == count)
  }

  @Test("A task goes on until its attempts and its time are both used up")
  func taskWindow() {
    var policy = DeliveryRetries.tasks
    policy.attemptsMax = 2
    policy.window = .seconds(100)
    policy.backOff.initial = .seconds(30)
    policy.backOff.maximum = .seconds(30)
    var delivery = task(due: now)
    var time = now
    while !delivery.state.isSettled {
      delivery = settle(delivery, failed(), policy, at: time)
      time = max(time, delivery.dueTime)
    }

    // Attempts at 0, 30, 60 and 90 s.
    #expect(delivery.attempts == 4)
  }

  @Test("Cloud Tasks' execution count leaves out the server's own failures")
  func executions() {
    var delivery = task(due: now)
    delivery = settle(delivery, failed(status: 503), .tasks)
    delivery = settle(delivery, failed(status: 404), .tasks)

    #expect(delivery.executions == 1)
    #expect(delivery.lastStatus == 404)
  }

  @Test("The manifest decides who retries, how often and when")
  func endpoints() {
    var event = FunctionEndpoint.created("a/{b}", retries: true)
    #expect(DeliveryRetries(event) == .events)
    event.eventTrigger?.retryConfig = .init(maxAttempts: 5, minBackoffSeconds: 2)
    #expect(DeliveryRetries(event).attemptsMax == 5)
    #expect(DeliveryRetries(event).backOff.initial == .seconds(2))
    event.eventTrigger?.retry = false
    #expect(DeliveryRetries(event).attemptsMax == 1)

    var schedule = FunctionEndpoint(entryPoint: "s")
    schedule.scheduleTrigger = .init(schedule: "* * * * *", retryConfig: .init(retryCount: 3))
    #expect(DeliveryRetries(schedule).attemptsMax == 4)
    var queue = FunctionEndpoint(entryPoint: "q")
    queue.taskQueueTrigger = .init(retryConfig: .init(maxAttempts: -1))
    #expect(DeliveryRetries(queue).attemptsMax == nil)
  }
}
