import DocumentModel
import TestSupport
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
    schedule.add(delivery(3, due: .seconds(8)), now: now)
    schedule.add(delivery(4, due: .seconds(7)), now: now)
    #expect(schedule.heldCount == 2)
    #expect(schedule.leftDue == now.advanced(by: .seconds(9)))
    #expect(schedule.isIdle(at: now))
    schedule.leftInStorage(due: now)
    #expect(!schedule.isIdle(at: now))
  }

  @Test("What is due takes the place of what waits longest, which storage keeps")
  func dueGoesFirst() {
    var schedule = DeliverySchedule(heldMax: 4)
    for sequence: UInt64 in 1...4 {
      schedule.add(delivery(sequence, due: .seconds(Int(sequence))), now: now)
    }
    schedule.add(delivery(5), now: now)
    schedule.add(delivery(6), now: now)
    schedule.add(delivery(7, due: .seconds(60)), now: now)

    #expect(schedule.start(now: now).map(\.id.sequence) == [5, 6])
    #expect(schedule.leftDue == now.advanced(by: .seconds(3)))
    #expect(!schedule.wantsRefill(at: now))
    let later = now.advanced(by: .seconds(2))
    #expect(schedule.start(now: later).map(\.id.sequence) == [1, 2])
    #expect(schedule.nextLook(after: later) == now.advanced(by: .seconds(3)))
  }

  @Test("However many wait, what is due in storage is wanted, unless enough is at work")
  func refillsDespiteWaiters() {
    var schedule = DeliverySchedule(heldMax: 4)
    for sequence: UInt64 in 1...4 { schedule.add(delivery(sequence, due: .seconds(9)), now: now) }
    schedule.leftInStorage(due: now)
    let wantsAmongWaiters = schedule.wantsRefill(at: now)
    schedule.beginRefill(now: now)
    schedule.endRefill((5...8).map { (delivery($0), 100) }, nextDue: now, now: now)
    let wantsAmongReady = schedule.wantsRefill(at: now)
    for started in schedule.start(now: now).prefix(2) {
      var ended = started
      ended.state = .succeeded
      schedule.finish(ended, now: now)
    }

    #expect(wantsAmongWaiters)
    #expect(!wantsAmongReady)
    #expect(schedule.heldCount == 2)
    #expect(schedule.wantsRefill(at: now))
    // An early look would only find what is due later.
    #expect(schedule.nextLook(after: now) == nil)
  }

  @Test("Bytes are bounded as well as numbers, and one delivery fits whatever its size")
  func boundsBytes() {
    var schedule = DeliverySchedule(heldMax: 100, heldBytesMax: 1000)
    schedule.add(delivery(1), bytes: 5000, now: now)
    schedule.add(delivery(2), bytes: 10, now: now)
    let first = schedule.start(now: now)
    var ended = first[0]
    ended.state = .succeeded
    schedule.finish(ended, now: now)
    schedule.beginRefill(now: now)
    schedule.endRefill((2...9).map { (delivery($0), 300) }, nextDue: nil, now: now)

    #expect(first.map(\.id.sequence) == [1])
    #expect(schedule.heldCount == 4)
    #expect(schedule.leftDue == now)
    #expect(!schedule.wantsRefill(at: now))
  }

  @Test("What was tried while storage was read is not taken from the older state read")
  func triedDuringRefill() {
    var schedule = DeliverySchedule(heldMax: 2)
    for sequence: UInt64 in 1...3 { schedule.add(delivery(sequence), now: now) }
    let started = schedule.start(now: now)
    var succeeded = started[0]
    succeeded.state = .succeeded
    var failed = started[1]
    failed.dueTime = now.advanced(by: .seconds(9))
    schedule.finish(succeeded, now: now)
    let wanted = schedule.wantsRefill(at: now)
    schedule.beginRefill(now: now)
    let idle = schedule.isIdle(at: now)
    schedule.finish(failed, now: now)
    schedule.endRefill([(started[1], 100), (delivery(3), 100)], nextDue: nil, now: now)

    #expect(started.map(\.id.sequence) == [1, 2])
    #expect(wanted && !idle)
    #expect(schedule.holdsAll && schedule.heldCount == 2)
    #expect(schedule.start(now: now).map(\.id.sequence) == [3])
    #expect(schedule.nextDue == failed.dueTime)
  }

  // A model of storage beside the schedule: whatever is due must start, however little fits, and
  // however much happens while a refill reads.
  @Test(
    "Everything starts when it is due, once per try, through any mixture of retries",
    arguments: [false, true]
  )
  func randomRetries(byHand: Bool) throws {
    var generator = SeededGenerator.forTest()
    var schedule = DeliverySchedule(heldMax: 8, runningPerFunctionMax: 3)
    var storage: [DeliveryID: Delivery] = [:]
    var read: [Delivery]?
    var time = now
    var sequence: UInt64 = 0
    for step in 0..<1000 {
      for _ in 0..<Int.random(in: 0...3, using: &generator) where step < 300 {
        sequence += 1
        let new = delivery(sequence, Bool.random(using: &generator) ? "f" : "g")
        storage[new.id] = new
        schedule.add(new, bytes: 1, now: time)
      }
      if let byDue = read, Bool.random(using: &generator) {
        let nextDue = byDue.count > 8 ? byDue[8].dueTime : nil
        schedule.endRefill(byDue.prefix(8).map { ($0, 1) }, nextDue: nextDue, now: time)
        read = nil
      }
      if schedule.wantsRefill(at: time) {
        schedule.beginRefill(now: time)
        read = storage.values.sorted { ($0.dueTime, $0.id) < ($1.dueTime, $1.id) }
      }
      let running = schedule.runningIDs
      let chosen = byHand ? schedule.startable(now: time).randomElement(using: &generator) : nil
      let started =
        byHand
        ? chosen.flatMap { schedule.start($0.id, now: time) }.map { [$0] } ?? []
        : schedule.start(now: time)
      for var tried in started {
        #expect(try #require(storage[tried.id]).dueTime <= time)
        #expect(!running.contains(tried.id))
        if step < 600, Int.random(in: 0..<3, using: &generator) == 0 {
          tried.dueTime = time.advanced(by: .seconds(Int.random(in: 1...50, using: &generator)))
          storage[tried.id] = tried
        } else {
          tried.state = .succeeded
          storage[tried.id] = nil
        }
        schedule.finish(tried, now: time)
      }
      let isDue = storage.values.contains { $0.dueTime <= time }
      #expect(schedule.heldCount <= 8)
      #expect(!schedule.holdsAll || schedule.heldCount == storage.count)
      #expect(schedule.isIdle(at: time) == (!isDue && read == nil))
      if schedule.isAtRest(at: time), schedule.startable(now: time).isEmpty { #expect(!isDue) }
      if schedule.isIdle(at: time), let next = schedule.nextDue { time = next }
    }

    #expect(sequence > 100)
    #expect(storage.isEmpty)
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

extension DeliverySchedule {
  /// Adds a small delivery.
  fileprivate mutating func add(_ delivery: Delivery, now: Timestamp) {
    add(delivery, bytes: 100, now: now)
  }
}
