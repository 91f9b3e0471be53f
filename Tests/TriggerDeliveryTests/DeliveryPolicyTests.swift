import DocumentModel
import Invocation
import RuntimeSupport
import Testing
import TriggerDelivery

@Suite("Delivery policy")
struct DeliveryPolicyTests {
  private let policy = DeliveryPolicy(
    backOff: BackOff(initial: .seconds(1), maximum: .seconds(60)),
    attemptsMax: 4,
    window: .seconds(3600),
    crashesMax: 3
  )
  private let now = Timestamp(microseconds: 1_000_000_000)

  private func delivery(retries: Bool) -> Delivery { .sample(retries: retries, at: now) }

  @Test("Success settles")
  func success() {
    let settled = policy.settle(delivery(retries: true), .succeeded, now: now)

    #expect(settled.state == .succeeded)
    #expect(settled.attempts == 1)
    #expect(settled.settledTime == now)
  }

  @Test("A failing handler without retries fails at once and keeps the reason")
  func failureWithoutRetries() {
    let settled = policy.settle(
      delivery(retries: false),
      .handlerFailed("no", advice: nil),
      now: now
    )

    #expect(settled.state == .failed)
    #expect(settled.lastError == "no")
  }

  @Test("Each failure of a retrying function doubles the wait, until the attempts are used up")
  func backOff() {
    var delivery = delivery(retries: true)
    var waits: [Duration] = []
    while !delivery.state.isSettled {
      delivery = policy.settle(delivery, .handlerFailed("no", advice: nil), now: now)
      if !delivery.state.isSettled { waits.append(delivery.dueTime.duration(since: now)) }
    }

    #expect(waits == [.seconds(1), .seconds(2), .seconds(4)])
    #expect(delivery.state == .dead)
    #expect(delivery.attempts == 4)
  }

  @Test("Past the window a retrying function's event is dead")
  func window() {
    let late = now.advanced(by: .seconds(3600))

    let settled = policy.settle(
      delivery(retries: true),
      .handlerFailed("no", advice: nil),
      now: late
    )
    #expect(settled.state == .dead)
  }

  @Test("The handler's advice overrides the wait, and never means dead")
  func advice() {
    let later = policy.settle(
      delivery(retries: true),
      .handlerFailed("no", advice: .after(seconds: 30)),
      now: now
    )
    #expect(later.dueTime.duration(since: now) == .seconds(30))

    let never = policy.settle(
      delivery(retries: true),
      .handlerFailed("no", advice: .never),
      now: now
    )
    #expect(never.state == .dead)
  }

  @Test("Three crashes in a row are death, with or without retries", arguments: [true, false])
  func crashes(retries: Bool) {
    var delivery = delivery(retries: retries)
    for _ in 0..<2 {
      delivery = policy.settle(delivery, .crashed("gone"), now: now)
      #expect(delivery.state == .pending)
    }
    delivery = policy.settle(delivery, .crashed("gone"), now: now)

    #expect(delivery.state == .dead)
    #expect(delivery.attempts == 0)
  }

  @Test("An answer between crashes starts their count anew")
  func crashesInterrupted() {
    var delivery = delivery(retries: true)
    let outcomes: [DeliveryPolicy.Outcome] = [
      .crashed("gone"), .crashed("gone"), .handlerFailed("no", advice: nil), .crashed("gone"),
    ]
    for outcome in outcomes { delivery = policy.settle(delivery, outcome, now: now) }

    #expect(delivery.state == .pending)
  }

  @Test("What could not start is tried again and not counted")
  func deferred() {
    let settled = policy.settle(delivery(retries: false), .deferred("busy"), now: now)

    #expect(settled.state == .pending)
    #expect(settled.attempts == 0 && settled.crashes == 0)
    #expect(settled.dueTime > now)
  }

  @Test("An event of a function that is gone is dead")
  func functionGone() {
    let settled = policy.settle(delivery(retries: true), .functionGone, now: now)

    #expect(settled.state == .dead)
  }
}
