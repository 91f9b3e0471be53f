import DocumentModel
import Testing
import TriggerDelivery

@Suite("Delivery schedule")
struct DeliveryScheduleTests {
  private let now = Timestamp(microseconds: 1_000_000_000)

  private func delivery(
    _ sequence: UInt64,
    _ function: String = "f",
    due: Duration = .zero
  ) -> Delivery {
    var delivery = Delivery.sample(sequence: sequence, function: function, at: now)
    delivery.dueTime = now.advanced(by: due)
    return delivery
  }

  @Test("What is due starts once, in the order of its arrival")
  func startsOnce() {
    var schedule = DeliverySchedule()
    for sequence: UInt64 in [3, 1, 2] { schedule.add(delivery(sequence), now: now) }
    schedule.add(delivery(1), now: now)

    #expect(schedule.start(now: now).map(\.id.sequence) == [3, 1, 2])
    #expect(schedule.start(now: now).isEmpty)
  }

  @Test("A slow function does not hold up another")
  func fairness() {
    var schedule = DeliverySchedule(runningPerFunctionMax: 1)
    for sequence: UInt64 in 1...3 { schedule.add(delivery(sequence, "slow"), now: now) }
    schedule.add(delivery(4, "quick"), now: now)

    #expect(schedule.start(now: now).map(\.id.function) == ["quick", "slow"])
  }

  @Test("A waiting delivery starts when it is due and not before")
  func waits() {
    var schedule = DeliverySchedule()
    schedule.add(delivery(1, due: .seconds(5)), now: now)

    #expect(schedule.start(now: now).isEmpty)
    #expect(schedule.nextDue == now.advanced(by: .seconds(5)))
    #expect(schedule.start(now: now.advanced(by: .seconds(5))).count == 1)
  }

  @Test("It is idle only when nothing runs, is due or overflowed")
  func idleness() throws {
    var schedule = DeliverySchedule(heldMax: 2)
    #expect(schedule.isIdle(at: now))
    schedule.add(delivery(1), now: now)
    #expect(!schedule.isIdle(at: now))
    var started = try #require(schedule.start(now: now).first)
    #expect(!schedule.isIdle(at: now))
    started.state = .succeeded
    schedule.finish(started, now: now)
    #expect(schedule.isIdle(at: now))

    schedule.add(delivery(2, due: .seconds(9)), now: now)
    #expect(schedule.isIdle(at: now))
    #expect(!schedule.isIdle(at: now.advanced(by: .seconds(9))))
    schedule.add(delivery(3, due: .seconds(9)), now: now)
    schedule.add(delivery(4, due: .seconds(9)), now: now)
    #expect(schedule.overflowed)
    #expect(!schedule.isIdle(at: now))
  }

  @Test("A delivery that is still pending after its try runs again when due")
  func again() throws {
    var schedule = DeliverySchedule()
    schedule.add(delivery(1), now: now)
    var tried = try #require(schedule.start(now: now).first)
    tried.dueTime = now.advanced(by: .seconds(1))
    schedule.finish(tried, now: now)

    #expect(schedule.start(now: now).isEmpty)
    #expect(schedule.start(now: now.advanced(by: .seconds(1))) == [tried])
  }
}
