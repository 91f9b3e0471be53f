import DocumentModel
import Manifests
import Testing

@testable import TriggerDelivery

@Suite("A function's backlog")
struct FunctionBacklogTests {
  private let now = Timestamp(microseconds: 1_800_000_000_000_000)
  private let room = 1 << 20

  private func backlog(_ limits: DispatchLimits = DispatchLimits()) -> FunctionBacklog {
    FunctionBacklog(function: "f", limits: limits)
  }

  private func candidate(
    _ sequence: UInt64,
    document: String? = nil,
    bytes: Int = 100
  ) -> DeliveryStore.Candidate {
    let delivery = Delivery.sample(sequence: sequence, document: document, at: now)
    return DeliveryStore.Candidate(delivery: delivery, event: nil, bytes: bytes)
  }

  private func places(_ sequences: UInt64...) -> [EventPlace] {
    sequences.map { EventPlace(sequence: $0, index: 0) }
  }

  private func started(_ backlog: inout FunctionBacklog, at time: Timestamp) -> [UInt64] {
    var started: [UInt64] = []
    while let entry = backlog.start(now: time) { started.append(entry.delivery.id.sequence) }
    return started
  }

  @Test("Deliveries start in order, and no more at once than the limit")
  func limit() {
    var backlog = backlog(DispatchLimits(concurrentMax: 2))
    backlog.add((1...4).map { candidate($0) }, room: room)

    let firstStarted = started(&backlog, at: now)
    #expect(firstStarted == [1, 2])
    var first = candidate(1).delivery
    first.end(.succeeded, nil, now)
    let end = backlog.finish(first)
    #expect(end?.new.state == .succeeded)
    let nextStarted = started(&backlog, at: now)
    #expect(nextStarted == [3])
  }

  @Test("Of one document's deliveries the next starts when the one before has ended")
  func lane() {
    var backlog = backlog()
    backlog.add((1...3).map { candidate($0, document: "things/a") }, room: room)

    let firstStarted = started(&backlog, at: now)
    #expect(firstStarted == [1])
    var first = candidate(1, document: "things/a").delivery
    first.end(.succeeded, nil, now)
    _ = backlog.finish(first)
    let nextStarted = started(&backlog, at: now)
    #expect(nextStarted == [2])
  }

  @Test(
    "Behind a postponed delivery its lane is parked, others go on, and new ones stay in storage"
  )
  func parking() throws {
    var backlog = backlog()
    let all = [candidate(1, document: "a/a"), candidate(2, document: "a/a"), candidate(3)]
    backlog.add(all, room: room)
    let startedBefore = started(&backlog, at: now)
    #expect(startedBefore == [1, 3])
    var first = all[0].delivery
    first.postpone(to: now.advanced(by: .seconds(5)), "no", at: now)
    let finished = backlog.finish(first)
    let end = try #require(finished)

    #expect(end.parked.map(\.id.sequence) == [2])
    let startedAfter = started(&backlog, at: now)
    #expect(startedAfter.isEmpty)
    backlog.add([candidate(4, document: "a/a")], room: room)
    backlog.saved(end)
    #expect(Set(backlog.entries.keys) == Set(places(3)))
    #expect(backlog.nextDue == now.advanced(by: .seconds(5)))
  }

  @Test("A delivery that waits after a crash is counted once, however often it is parked")
  func parkedUnanswered() throws {
    var backlog = backlog()
    var crashed = candidate(2, document: "a/a")
    crashed.delivery.crashes = 1
    crashed.delivery.isUnanswered = true
    crashed.delivery.postpone(to: now, "gone", at: now)
    backlog.count(by: 1, unanswered: 1)
    backlog.add([candidate(1, document: "a/a")], room: room)
    _ = started(&backlog, at: now)
    _ = backlog.bring(crashed, isForced: false)
    var first = candidate(1, document: "a/a").delivery
    first.postpone(to: now, "no", at: now)
    let finished = backlog.finish(first)
    let end = try #require(finished)
    #expect(end.parked.map(\.id.sequence) == [2])
    backlog.saved(end)

    #expect(backlog.unansweredCount == 1)
  }

  @Test("A delivery being stored stays known, so that a read that began before does not repeat it")
  func staleRead() throws {
    var backlog = backlog()
    let only = candidate(1)
    backlog.add([only], room: room)
    _ = started(&backlog, at: now)
    backlog.noteMore()
    let request = backlog.beginLoad(now: now, bytesMax: room)
    var done = only.delivery
    done.end(.succeeded, nil, now)
    let finished = backlog.finish(done)
    let end = try #require(finished)
    backlog.saved(end)
    #expect(request.known == Set(places(1)))
    _ = backlog.apply(DeliveryStore.Loaded(candidates: [only]))

    #expect(backlog.entries.isEmpty && backlog.count == 0)
  }

  @Test("A read does not forget what was written while it went on")
  func writtenMeanwhile() {
    var backlog = backlog()
    backlog.noteMore()
    _ = backlog.beginLoad(now: now, bytesMax: room)
    let new = candidate(7)
    backlog.add([new], room: room)
    #expect(backlog.entries.isEmpty)
    backlog.inserted([new.delivery])
    _ = backlog.apply(DeliveryStore.Loaded())

    #expect(backlog.wantsLoad(now: now))
  }

  @Test("Once a delivery stays in storage, later ones do as well, and are read after it")
  func order() {
    var backlog = backlog()
    backlog.add([candidate(1, bytes: 60)], room: 100)
    backlog.inserted([candidate(1).delivery])
    backlog.add([candidate(2, bytes: 60)], room: 40)
    backlog.add([candidate(3, bytes: 1)], room: 40)
    backlog.inserted([candidate(2).delivery])

    #expect(Set(backlog.entries.keys) == Set(places(1)))
    let request = backlog.beginLoad(now: now, bytesMax: room)
    #expect(request.position == places(1)[0])
    _ = backlog.apply(
      DeliveryStore.Loaded(candidates: [candidate(2), candidate(3)], position: places(3)[0])
    )
    let startedInOrder = started(&backlog, at: now)
    #expect(startedInOrder == [1, 2, 3])
    // The write of the third one has not been reported, so more may follow.
    #expect(!backlog.isIdle(at: now))
    backlog.inserted([candidate(3).delivery])
    #expect(!backlog.wantsLoad(now: now))
  }

  @Test("Suspects run a few at a time, and others pass them")
  func crashCandidates() {
    var backlog = backlog()
    backlog.add((1...8).map { candidate($0) }, room: room)
    _ = started(&backlog, at: now)
    for place in places(1, 2, 3, 4, 5, 6) { backlog.release(place, asCrashCandidate: true) }
    backlog.release(places(8)[0], asCrashCandidate: false)
    var apart: [Bool] = []
    while let entry = backlog.start(now: now) { apart.append(entry.isCrashCandidate) }

    #expect(apart.count { $0 } == 4)
    #expect(apart.count { !$0 } == 1)
  }

  @Test("As many suspects run at one time as the function may have workers for them")
  func suspectsByInstances() {
    for instances in [1, 2, 4] {
      let isolatedMax = FunctionEndpoint.isolatedMax(instances: instances)
      var backlog = backlog(DispatchLimits(isolatedMax: isolatedMax))
      backlog.add((1...8).map { candidate($0) }, room: room)
      _ = started(&backlog, at: now)
      for place in places(1, 2, 3, 4, 5, 6, 7, 8) { backlog.release(place, asCrashCandidate: true) }

      let result = started(&backlog, at: now)
      #expect(result == Array(1...UInt64(instances)))
    }
  }

  @Test("What waits behind a run when its function goes away is read again, and waits behind it")
  func suspendedBehindRun() {
    var backlog = backlog()
    let all = [candidate(1, document: "a/a"), candidate(2, document: "a/a"), candidate(3)]
    backlog.add(all, room: room)
    _ = backlog.start(now: now)
    backlog.suspend(.init(since: now, until: now.advanced(by: .seconds(60))))
    #expect(Set(backlog.entries.keys) == Set(places(1)))
    #expect(backlog.blockedCount == 0 && backlog.heldBytes == 100 && backlog.count == 3)
    backlog.resume()
    #expect(backlog.wantsLoad(now: now))
    _ = backlog.beginLoad(now: now, bytesMax: room)
    _ = backlog.apply(
      DeliveryStore.Loaded(candidates: Array(all[1...2]), position: places(3)[0])
    )

    let beside = started(&backlog, at: now)
    #expect(beside == [3])
    finish(&backlog, all[0])
    let after = started(&backlog, at: now)
    #expect(after == [2])
  }

  @Test("What leaves memory before its row is written is read once it is written, in its order")
  func suspendedBeforeWritten() {
    var backlog = backlog()
    backlog.add([candidate(1, document: "a/a")], room: room)
    backlog.suspend(.init(since: now, until: now.advanced(by: .seconds(60))))
    backlog.resume()
    _ = backlog.beginLoad(now: now, bytesMax: room)
    _ = backlog.apply(DeliveryStore.Loaded())
    backlog.inserted([candidate(1, document: "a/a").delivery])
    backlog.add([candidate(2, document: "a/a")], room: room)

    let early = started(&backlog, at: now)
    #expect(early.isEmpty && backlog.wantsLoad(now: now))
  }

  @Test("A read that was under way when its function went away brings nothing into memory")
  func readWhileSuspended() {
    var backlog = backlog()
    backlog.noteMore()
    _ = backlog.beginLoad(now: now, bytesMax: room)
    backlog.suspend(.init(since: now, until: now.advanced(by: .seconds(60))))
    _ = backlog.apply(DeliveryStore.Loaded(candidates: [candidate(1)], position: places(1)[0]))

    #expect(backlog.entries.isEmpty)
    backlog.resume()
    #expect(backlog.wantsLoad(now: now))
  }

  @Test("What a read finds before it is added, because its write is under way, runs once")
  func readBeforeAdded() {
    var backlog = backlog()
    backlog.add([candidate(1)], room: 0)
    backlog.inserted([candidate(1).delivery])
    _ = backlog.beginLoad(now: now, bytesMax: room)
    // The rows of 2 and 3 are stored; the row of 4 is not yet.
    _ = backlog.apply(
      DeliveryStore.Loaded(candidates: [1, 2, 3].map { candidate($0) }, position: places(3)[0])
    )
    let first = started(&backlog, at: now)
    finish(&backlog, candidate(2))
    backlog.add([2, 3, 4].map { candidate($0) }, room: room)

    let then = started(&backlog, at: now)
    #expect(first == [1, 2, 3])
    #expect(then == [4])
    #expect(backlog.count == 3)
  }

  // MARK: Documents with many events

  private func finish(_ backlog: inout FunctionBacklog, _ candidate: DeliveryStore.Candidate) {
    var done = candidate.delivery
    done.end(.succeeded, nil, now)
    guard let end = backlog.finish(done) else {
      Issue.record("\(done.id) does not run")
      return
    }
    backlog.saved(end)
  }

  @Test("A document's deliveries take their share of the window; what comes after stays in storage")
  func share() {
    var backlog = backlog(DispatchLimits(concurrentMax: 32))
    let hot = (1...10).map { candidate($0, document: "a/hot") }
    backlog.add(hot, room: room)

    #expect(backlog.entries.count == LaneShare(windowMax: 64).laneMax)
    #expect(backlog.blockedCount == backlog.entries.count - 1)
  }

  @Test("Those behind others, of however many documents, take half of the window at most")
  func halfOfTheWindow() {
    var backlog = backlog(DispatchLimits(concurrentMax: 32))
    for number in 1...UInt64(40) {
      backlog.add([candidate(number, document: "a/\(number % 20)")], room: room)
    }
    #expect(backlog.blockedCount == 20)
    for number in 41...UInt64(80) where backlog.blockedCount < 32 {
      backlog.add([candidate(number, document: "a/\(number % 20)")], room: room)
    }
    #expect(backlog.blockedCount == 32)
    backlog.add([candidate(90, document: "a/1")], room: room)
    #expect(backlog.blockedCount == 32)
  }

  @Test("Large events of one document wait in storage, but for the first and little more")
  func largeEvents() {
    var backlog = backlog()
    let bytes = LaneShare.blockedBytesMax
    let large = (1...5).map { candidate($0, document: "a/hot", bytes: bytes) }
    backlog.add(large, room: 100 * bytes)

    #expect(Set(backlog.entries.keys) == Set(places(1, 2)))
  }

  @Test("A lane's next deliveries are read in batches, once few of it are left in the window")
  func batches() {
    var backlog = backlog(DispatchLimits(concurrentMax: 32))
    let hot = (1...10).map { candidate($0, document: "a/hot") }
    backlog.add(hot, room: room)
    backlog.inserted(hot.map(\.delivery))
    let first = backlog.beginLoad(now: now, bytesMax: room)
    #expect(first.lanes.isEmpty)
    let left = hot.dropFirst(4).map(\.delivery)
    let parked = backlog.apply(
      DeliveryStore.Loaded(parked: left, position: places(10)[0], hasLaneRows: true)
    )
    #expect(parked == left)
    backlog.endParking(parked)
    // Nothing is read while the window holds more than half of the lane's share.
    #expect(!backlog.wantsLoad(now: now))
    _ = started(&backlog, at: now)
    finish(&backlog, hot[0])
    #expect(!backlog.wantsLoad(now: now))
    _ = started(&backlog, at: now)
    finish(&backlog, hot[1])
    #expect(backlog.wantsLoad(now: now))
    let second = backlog.beginLoad(now: now, bytesMax: room)
    #expect(second.lanes == [hot[0].delivery.lane])
    _ = backlog.apply(
      DeliveryStore.Loaded(
        candidates: Array(hot[4...5]),
        position: places(10)[0],
        hasLaneRows: true
      )
    )
    var order: [UInt64] = []
    for number in 2...5 {
      order += started(&backlog, at: now)
      finish(&backlog, hot[number])
    }
    #expect(order == [3, 4, 5, 6])
    #expect(backlog.blockedCount == 0 && backlog.entries.isEmpty)
  }

  @Test("Without a worker nothing starts for a while, which grows, and one answer ends it")
  func withoutWorker() {
    var backlog = backlog()
    backlog.add((1...3).map { candidate($0) }, room: room)
    _ = started(&backlog, at: now)
    let waits: (Int) -> Duration = { .seconds($0) }
    let isNews = places(1, 2, 3).map { backlog.notStarted($0, now: now, wait: waits) }
    #expect(isNews == [true, false, false])
    #expect(backlog.nextTime == now.advanced(by: .seconds(1)))
    let startedAtOnce = started(&backlog, at: now)
    #expect(startedAtOnce.isEmpty)
    let later = now.advanced(by: .seconds(1))
    let again = started(&backlog, at: later)
    #expect(Set(again) == [1, 2, 3])
    _ = backlog.notStarted(places(1)[0], now: later, wait: waits)
    #expect(backlog.nextTime == later.advanced(by: .seconds(2)))

    backlog.workerResponded()
    #expect(backlog.unstartableSince == nil)
    let startedAfterResponse = started(&backlog, at: later)
    #expect(startedAfterResponse == [1])
  }

  @Test("A reservation waits for the read, and the next read for the reservation")
  func reservation() {
    var backlog = backlog()
    backlog.noteMore()
    _ = backlog.beginLoad(now: now, bytesMax: room)
    backlog.wantReservation()
    let isReservedDuringRead = backlog.reserve()
    #expect(!isReservedDuringRead)
    _ = backlog.apply(DeliveryStore.Loaded(hasMore: true))
    #expect(!backlog.wantsLoad(now: now))
    let isReservedAfterRead = backlog.reserve()
    #expect(isReservedAfterRead)
    #expect(!backlog.wantsLoad(now: now))
    backlog.endReservation(wasGranted: true)
    #expect(backlog.wantsLoad(now: now))
  }

  @Test("A rate spreads the starts, and a clock that was set back does not stop them")
  func rate() {
    var backlog = backlog(DispatchLimits(concurrentMax: 100, perSecondMax: 2))
    backlog.add((1...4).map { candidate($0) }, room: room)
    let startedFirst = started(&backlog, at: now)
    #expect(startedFirst == [1])
    let startedTooEarly = started(&backlog, at: now.advanced(by: .milliseconds(499)))
    #expect(startedTooEarly.isEmpty)
    let startedWhenDue = started(&backlog, at: now.advanced(by: .milliseconds(501)))
    #expect(startedWhenDue == [2])
    let past = now.advanced(by: .seconds(-86_400))
    let startedInPast = started(&backlog, at: past)
    #expect(startedInPast.isEmpty)
    let startedOneSecondLater = started(&backlog, at: past.advanced(by: .seconds(1)))
    #expect(startedOneSecondLater == [3])
  }

  @Test("A paused queue starts only forced tasks and is otherwise idle")
  func paused() {
    var backlog = backlog()
    backlog.isPaused = true
    backlog.add((1...2).map { candidate($0) }, room: room)
    let startedWhilePaused = started(&backlog, at: now)
    #expect(startedWhilePaused.isEmpty)
    #expect(backlog.isIdle(at: now) && backlog.isStill(at: now))
    let isReady = backlog.bring(candidate(2), isForced: true)
    #expect(isReady)
    #expect(!backlog.isIdle(at: now))
    let startedByForce = started(&backlog, at: now)
    #expect(startedByForce == [2])
  }
}
