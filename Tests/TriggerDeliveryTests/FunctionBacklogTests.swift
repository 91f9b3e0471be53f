import DocumentModel
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
    let isLeft = backlog.add((1...4).map { candidate($0) }, room: room)

    #expect(!isLeft)
    let result9 = started(&backlog, at: now)
    #expect(result9 == [1, 2])
    var first = candidate(1).delivery
    first.end(.succeeded, nil, now)
    let end = backlog.finish(first)
    #expect(end?.new.state == .succeeded)
    let result10 = started(&backlog, at: now)
    #expect(result10 == [3])
  }

  @Test("Of one document's deliveries the next starts when the one before has ended")
  func lane() {
    var backlog = backlog()
    _ = backlog.add((1...3).map { candidate($0, document: "things/a") }, room: room)

    let result11 = started(&backlog, at: now)
    #expect(result11 == [1])
    var first = candidate(1, document: "things/a").delivery
    first.end(.succeeded, nil, now)
    _ = backlog.finish(first)
    let result12 = started(&backlog, at: now)
    #expect(result12 == [2])
  }

  @Test(
    "Behind a postponed delivery its lane is parked, others go on, and new ones stay in storage"
  )
  func parking() throws {
    var backlog = backlog()
    let all = [candidate(1, document: "a/a"), candidate(2, document: "a/a"), candidate(3)]
    _ = backlog.add(all, room: room)
    let result13 = started(&backlog, at: now)
    #expect(result13 == [1, 3])
    var first = all[0].delivery
    first.postpone(to: now.advanced(by: .seconds(5)), "no", at: now)
    let finished = backlog.finish(first)
    let end = try #require(finished)

    #expect(end.parked.map(\.id.sequence) == [2])
    let result14 = started(&backlog, at: now)
    #expect(result14.isEmpty)
    let result1 = backlog.add([candidate(4, document: "a/a")], room: room)
    #expect(result1)
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
    _ = backlog.add([candidate(1, document: "a/a")], room: room)
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
    _ = backlog.add([only], room: room)
    _ = started(&backlog, at: now)
    backlog.noteMore()
    let request = backlog.beginLoad(now: now, bytesMax: room, shards: .all)
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
    _ = backlog.beginLoad(now: now, bytesMax: room, shards: .all)
    let new = candidate(7)
    let result2 = backlog.add([new], room: room)
    #expect(result2)
    backlog.inserted([new.delivery])
    _ = backlog.apply(DeliveryStore.Loaded())

    #expect(backlog.wantsLoad(now: now))
  }

  @Test("Once a delivery stays in storage, later ones do as well, and are read after it")
  func order() {
    var backlog = backlog()
    let result3 = backlog.add([candidate(1, bytes: 60)], room: 100)
    #expect(!result3)
    let result4 = backlog.add([candidate(2, bytes: 60)], room: 40)
    #expect(result4)
    let result5 = backlog.add([candidate(3, bytes: 1)], room: 40)
    #expect(result5)
    backlog.inserted([candidate(2).delivery])

    #expect(Set(backlog.entries.keys) == Set(places(1)))
    let request = backlog.beginLoad(now: now, bytesMax: room, shards: .all)
    #expect(request.position == places(1)[0])
    _ = backlog.apply(
      DeliveryStore.Loaded(candidates: [candidate(2), candidate(3)], position: places(3)[0])
    )
    let result15 = started(&backlog, at: now)
    #expect(result15 == [1, 2, 3])
    // The third one's write has not been reported, so more may come.
    #expect(!backlog.isIdle(at: now))
    backlog.inserted([candidate(3).delivery])
    #expect(!backlog.wantsLoad(now: now))
  }

  @Test("Suspects run a few at a time, and others pass them")
  func suspects() {
    var backlog = backlog()
    _ = backlog.add((1...8).map { candidate($0) }, room: room)
    _ = started(&backlog, at: now)
    for place in places(1, 2, 3, 4, 5, 6) { backlog.release(place, asSuspect: true) }
    backlog.release(places(8)[0], asSuspect: false)
    var apart: [Bool] = []
    while let entry = backlog.start(now: now) { apart.append(entry.isSuspect) }

    #expect(apart.count { $0 } == 4)
    #expect(apart.count { !$0 } == 1)
  }

  @Test("Without a worker nothing starts for a while, which grows, and one answer ends it")
  func withoutWorker() {
    var backlog = backlog()
    _ = backlog.add((1...3).map { candidate($0) }, room: room)
    _ = started(&backlog, at: now)
    let waits: (Int) -> Duration = { .seconds($0) }
    let isNews = places(1, 2, 3).map { backlog.notStarted($0, now: now, wait: waits) }
    #expect(isNews == [true, false, false])
    #expect(backlog.nextTime == now.advanced(by: .seconds(1)))
    let result16 = started(&backlog, at: now)
    #expect(result16.isEmpty)
    let later = now.advanced(by: .seconds(1))
    let again = started(&backlog, at: later)
    #expect(Set(again) == [1, 2, 3])
    _ = backlog.notStarted(places(1)[0], now: later, wait: waits)
    #expect(backlog.nextTime == later.advanced(by: .seconds(2)))

    backlog.workerAnswered()
    #expect(backlog.unstartableSince == nil)
    let result17 = started(&backlog, at: later)
    #expect(result17 == [1])
  }

  @Test("A reservation waits for the read, and the next read for the reservation")
  func reservation() {
    var backlog = backlog()
    backlog.noteMore()
    _ = backlog.beginLoad(now: now, bytesMax: room, shards: .all)
    backlog.wantReservation()
    let result6 = backlog.reserve()
    #expect(!result6)
    _ = backlog.apply(DeliveryStore.Loaded(hasMore: true))
    #expect(!backlog.wantsLoad(now: now))
    let result7 = backlog.reserve()
    #expect(result7)
    #expect(!backlog.wantsLoad(now: now))
    backlog.endReservation(wasGranted: true)
    #expect(backlog.wantsLoad(now: now))
  }

  @Test("A rate spreads the starts, and a clock that was set back does not stop them")
  func rate() {
    var backlog = backlog(DispatchLimits(concurrentMax: 100, perSecondMax: 2))
    _ = backlog.add((1...4).map { candidate($0) }, room: room)
    let result18 = started(&backlog, at: now)
    #expect(result18 == [1])
    let result19 = started(&backlog, at: now.advanced(by: .milliseconds(499)))
    #expect(result19.isEmpty)
    let result20 = started(&backlog, at: now.advanced(by: .milliseconds(501)))
    #expect(result20 == [2])
    let past = now.advanced(by: .seconds(-86_400))
    let result21 = started(&backlog, at: past)
    #expect(result21.isEmpty)
    let result22 = started(&backlog, at: past.advanced(by: .seconds(1)))
    #expect(result22 == [3])
  }

  @Test("A paused queue starts only what is forced, and is idle meanwhile")
  func paused() {
    var backlog = backlog()
    backlog.isPaused = true
    _ = backlog.add((1...2).map { candidate($0) }, room: room)
    let result23 = started(&backlog, at: now)
    #expect(result23.isEmpty)
    #expect(backlog.isIdle(at: now) && backlog.isStill(at: now))
    let result8 = backlog.bring(candidate(2), isForced: true)
    #expect(result8)
    #expect(!backlog.isIdle(at: now))
    let result24 = started(&backlog, at: now)
    #expect(result24 == [2])
  }
}
