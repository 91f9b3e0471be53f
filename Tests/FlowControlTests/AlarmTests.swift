import FlowControl
import TestSupport
import Testing

@Suite("Alarm")
struct AlarmTests {
  private let clock = ManualClock()
  private let alarm: Alarm<Duration>

  init() {
    alarm = Alarm { [clock] in try await clock.sleep(until: ManualClock.Instant(offset: $0)) }
  }

  /// Runs the alarm while `body` runs, which gets the times at which it rings.
  private func ringing(_ body: (inout AsyncStream<Duration>.Iterator) async -> Void) async {
    let (rings, ring) = AsyncStream.makeStream(of: Duration.self)
    await withDiscardingTaskGroup { group in
      group.addTask { await alarm.run { ring.yield(clock.now.offset) } }
      var iterator = rings.makeAsyncIterator()
      await body(&iterator)
      group.cancelAll()
    }
  }

  @Test("It rings at the earliest of its times, and no task sleeps for a later one")
  func earliest() async {
    await ringing { rings in
      for seconds in [5, 7, 3, 3, 4] { alarm.set(.seconds(seconds)) }
      await clock.waitForSleepers(2)
      #expect(clock.sleepersCount == 2)
      clock.advance(by: .seconds(3))
      let first = await rings.next()
      #expect(first == .seconds(3))
      alarm.set(.seconds(4))
      await clock.waitForSleepers(2)
      clock.advance(by: .seconds(1))
      let second = await rings.next()
      #expect(second == .seconds(4))
    }
    #expect(clock.sleepersCount == 0)
  }

  @Test("A time that is past rings at once")
  func past() async {
    clock.advance(by: .seconds(9))
    await ringing { rings in
      alarm.set(.seconds(1))
      let only = await rings.next()
      #expect(only == .seconds(9))
    }
  }

  @Test("After a reset, a later time counts again")
  func reset() async {
    await ringing { rings in
      alarm.set(.seconds(5))
      await clock.waitForSleepers(1)
      alarm.reset()
      alarm.set(.seconds(6))
      await clock.waitForSleepers(2)
      clock.advance(by: .seconds(5))
      let first = await rings.next()
      #expect(first == .seconds(5))
      clock.advance(by: .seconds(1))
      let second = await rings.next()
      #expect(second == .seconds(6))
    }
  }
}
