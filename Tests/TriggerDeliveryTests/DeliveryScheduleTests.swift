import DocumentModel
import Events
import Identity
import Invocation
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery schedule")
struct DeliveryScheduleTests {
  private let now = Timestamp(microseconds: 1_000_000_000)

  private func delivery(
    _ sequence: UInt64,
    _ function: String = "f",
    document: String? = nil,
    due: Duration = .zero
  ) -> Delivery {
    var delivery = Delivery.sample(
      sequence: sequence,
      function: function,
      document: document,
      at: now
    )
    delivery.dueTime = now.advanced(by: due)
    return delivery
  }

  private func task(_ sequence: UInt64, due: Duration = .zero) -> Delivery {
    Delivery(
      id: DeliveryID(sequence: sequence, changeIndex: 0, function: "queue"),
      content: .occurrence(
        .task(
          EnqueuedTask(
            id: "t\(sequence)",
            queue: "queue",
            body: [],
            scheduleTime: now.advanced(by: due)
          )
        )
      ),
      commitTime: now,
      auth: .admin
    )
  }

  private func succeeded(_ delivery: Delivery) -> Delivery {
    var delivery = delivery
    delivery.state = .succeeded
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

  @Test("A slow function does not hold up another, and has what waits for it out of memory")
  func fairness() {
    var schedule = DeliverySchedule { _ in DispatchLimits(concurrentMax: 1) }
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

  @Test("It is idle only when nothing runs and nothing is due")
  func idleness() {
    var schedule = DeliverySchedule()
    #expect(schedule.isIdle(at: now))
    schedule.add(delivery(1), now: now)
    #expect(!schedule.isIdle(at: now))
    _ = schedule.start(now: now)
    #expect(!schedule.isIdle(at: now))
    schedule.finish(succeeded(delivery(1)), bytes: 1, now: now)
    #expect(schedule.isIdle(at: now))

    schedule.add(delivery(2, due: .seconds(9)), now: now)
    #expect(schedule.isIdle(at: now))
    #expect(!schedule.isIdle(at: now.advanced(by: .seconds(9))))
  }

  @Test("It is not idle while one waits for another worker, unlike for a retry of its handler")
  func unanswered() {
    for isUnanswered in [true, false] {
      var schedule = DeliverySchedule()
      schedule.add(delivery(1), now: now)
      _ = schedule.start(now: now)
      var tried = delivery(1, due: .seconds(1))
      tried.isUnanswered = isUnanswered
      schedule.finish(tried, bytes: 1, now: now)
      #expect(schedule.isIdle(at: now) == !isUnanswered)
      #expect(schedule.isStill(at: now))

      var restarted = DeliverySchedule()
      restarted.add(DeliveryStore.Pending(tried), now: now)
      #expect(restarted.isIdle(at: now) == !isUnanswered)
      #expect(restarted.start(now: now.advanced(by: .seconds(1))).count == 1)
      restarted.finish(succeeded(tried), bytes: 1, now: now)
      #expect(restarted.isIdle(at: now))
    }
  }

  @Test("Of one document a function gets one event after the other, also through a retry")
  func order() {
    var schedule = DeliverySchedule()
    for sequence: UInt64 in 1...3 { schedule.add(delivery(sequence, document: "a/b"), now: now) }
    schedule.add(delivery(4, "g", document: "a/b"), now: now)
    schedule.add(delivery(5, document: "a/c"), now: now)
    #expect(schedule.start(now: now).map(\.id.sequence) == [1, 5, 4])

    let later = now.advanced(by: .seconds(1))
    schedule.finish(delivery(1, document: "a/b", due: .seconds(1)), bytes: 1, now: now)
    #expect(schedule.start(now: now).isEmpty)
    #expect(schedule.start(now: later).map(\.id.sequence) == [1])
    schedule.finish(succeeded(delivery(1, document: "a/b")), bytes: 1, now: later)
    #expect(schedule.start(now: later).map(\.id.sequence) == [2])
  }

  @Test("An event that is delivered anew goes before the later ones of its document")
  func renewed() {
    var schedule = DeliverySchedule()
    schedule.add(delivery(3, document: "a/b"), now: now)
    schedule.add(delivery(1, document: "a/b"), now: now)
    schedule.add(delivery(2, document: "a/b"), now: now)
    var order: [UInt64] = []
    while let start = schedule.start(now: now).first {
      order.append(start.id.sequence)
      var done = Delivery.sample(sequence: start.id.sequence, document: "a/b", at: now)
      done.state = .succeeded
      schedule.finish(done, bytes: 1, now: now)
    }

    #expect(order == [1, 2, 3])
  }

  @Test("Without order the events of one document run side by side")
  func unordered() {
    var schedule = DeliverySchedule()
    for sequence: UInt64 in 1...3 {
      let delivery = delivery(sequence, document: "a/b")
      schedule.add(delivery, bytes: 1, isOrdered: false, now: now)
    }

    #expect(schedule.start(now: now).count == 3)
  }

  @Test("Without order a schedule's runs come one after the other all the same")
  func unorderedSchedule() {
    var schedule = DeliverySchedule()
    for sequence: UInt64 in 1...2 {
      let run = Delivery(
        id: DeliveryID(sequence: sequence, changeIndex: 0, function: "nightly"),
        content: .occurrence(.schedule(function: "nightly", time: now)),
        commitTime: now,
        auth: .admin
      )
      schedule.add(run, bytes: 1, isOrdered: false, now: now)
    }

    #expect(schedule.start(now: now).count == 1)
    #expect(schedule.isOccupied(.schedule(of: "nightly")))
  }

  @Test("No more starts than a function's workers take, for waiting counts as running there")
  func capacity() {
    var endpoint = FunctionEndpoint.created("things/{id}")
    #expect(DispatchLimits(endpoint).concurrentMax == DispatchLimits.concurrentDefault)
    endpoint.concurrency = 1
    #expect(DispatchLimits(endpoint).concurrentMax == FunctionEndpoint.instancesDefault)
    endpoint.maxInstances = 2
    #expect(DispatchLimits(endpoint).concurrentMax == 2)
    var queue = FunctionEndpoint(entryPoint: "f")
    queue.taskQueueTrigger = .init()
    #expect(DispatchLimits(queue).concurrentMax == queue.capacity)
  }

  @Test("What does not fit in memory starts all the same, to be read from storage")
  func boundsBytes() {
    var schedule = DeliverySchedule(heldBytesMax: 250)
    for sequence: UInt64 in 1...4 { schedule.add(delivery(sequence), now: now) }

    let started = schedule.start(now: now)
    #expect(started.map { $0.held != nil } == [true, true, false, false])
    #expect(schedule.hasRoom(for: 250))
  }

  @Test("A queue starts no more than its rate allows, evenly, and says when the next may")
  func rate() {
    var schedule = DeliverySchedule { _ in DispatchLimits(concurrentMax: 100, perSecondMax: 2) }
    for sequence: UInt64 in 1...5 { schedule.add(task(sequence), now: now) }
    var starts: [Duration] = []
    var time = now
    while schedule.count > starts.count {
      starts += schedule.start(now: time).map { _ in time.duration(since: now) }
      time = schedule.nextDue ?? time
    }

    let seconds = starts.map { ($0 / .seconds(1) * 1000).rounded() / 1000 }
    #expect(seconds == [0, 0.5, 1, 1.5, 2])
  }

  @Test("A paused queue starts nothing and keeps nobody waiting for it")
  func paused() {
    var schedule = DeliverySchedule()
    schedule.setPaused(true, function: "queue")
    schedule.add(task(1), now: now)
    #expect(schedule.start(now: now).isEmpty)
    #expect(schedule.isIdle(at: now))

    schedule.setPaused(false, function: "queue")
    #expect(schedule.start(now: now).count == 1)
  }

  @Test("A task can be hastened or removed while it waits, and not while it runs")
  func hastenAndRemove() {
    var schedule = DeliverySchedule()
    schedule.add(task(1, due: .seconds(60)), now: now)
    schedule.add(task(2, due: .seconds(60)), now: now)
    let hastened = schedule.hasten(task(1).id, now: now)
    #expect(hastened)
    #expect(schedule.start(now: now).map(\.id.sequence) == [1])
    let removedRunning = schedule.remove(task(1).id, now: now)
    let removedWaiting = schedule.remove(task(2).id, now: now)
    #expect(!removedRunning && removedWaiting)
    #expect(schedule.nextDue == nil)
    #expect(schedule.taskCount == 1)
  }

  // A model beside the schedule: whatever is due must start unless an earlier one of its document is
  // there, however it came.
  @Test("Everything starts when it is due, in its document's order, through any mixture of retries")
  func randomRetries() throws {
    var generator = SeededGenerator.forTest()
    var schedule = DeliverySchedule(heldBytesMax: 800) { _ in DispatchLimits(concurrentMax: 3) }
    var pending: [DeliveryID: Delivery] = [:]
    var running: [Delivery] = []
    var time = now
    var sequence: UInt64 = 0
    func lane(_ delivery: Delivery) -> String { "\(delivery.id.function) \(delivery.subject)" }
    for step in 0..<2000 {
      for _ in 0..<Int.random(in: 0...3, using: &generator) where step < 300 {
        sequence += 1
        var new = delivery(
          sequence,
          Bool.random(using: &generator) ? "f" : "g",
          document: "d/\(Int.random(in: 0..<5, using: &generator))"
        )
        new.dueTime = time
        pending[new.id] = new
        schedule.add(new, now: time)
      }
      for start in schedule.start(now: time) {
        let delivery = try #require(pending[start.id])
        #expect(delivery.dueTime <= time)
        #expect(!pending.values.contains { lane($0) == lane(delivery) && $0.id < delivery.id })
        #expect(!running.contains { lane($0) == lane(delivery) })
        running.append(delivery)
      }
      while !running.isEmpty, Int.random(in: 0..<3, using: &generator) > 0 {
        var tried = running.remove(at: Int.random(in: running.indices, using: &generator))
        if step < 600, Int.random(in: 0..<3, using: &generator) == 0 {
          tried.dueTime = time.advanced(by: .seconds(Int.random(in: 1...50, using: &generator)))
          pending[tried.id] = tried
        } else {
          tried.state = .succeeded
          pending[tried.id] = nil
        }
        schedule.finish(tried, bytes: 100, now: time)
      }
      if running.isEmpty, schedule.isIdle(at: time), let next = schedule.nextDue { time = next }
    }

    #expect(sequence > 100)
    #expect(pending.isEmpty && schedule.count == 0)
    #expect(schedule.hasRoom(for: 800))
  }
}

extension DeliverySchedule {
  /// Adds a small delivery.
  fileprivate mutating func add(_ delivery: Delivery, now: Timestamp) {
    add(delivery, bytes: 100, now: now)
  }
}
