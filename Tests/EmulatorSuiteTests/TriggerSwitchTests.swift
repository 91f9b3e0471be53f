import Logging
import Synchronization
import TestSupport
import Testing

@testable import EmulatorSuite

@Suite("The hub's switch of triggers", .timeLimit(.minutes(5)))
struct TriggerSwitchTests {
  /// Triggers that exist only in memory.
  private final class Target: TriggerTarget {
    private struct State {
      var isEnabled = true
      var skipped = 0
    }

    private let state = Mutex(State())
    /// The new value of every change.
    let changes: AsyncStream<Bool>
    private let change: AsyncStream<Bool>.Continuation

    init() { (changes, change) = AsyncStream.makeStream() }

    var isEnabled: Bool { state.withLock { $0.isEnabled } }

    var eventsSkipped: Int { state.withLock { $0.skipped } }

    func pass(_ count: Int) { state.withLock { $0.skipped += count } }

    func setEnabled(_ isEnabled: Bool) async throws {
      state.withLock { $0.isEnabled = isEnabled }
      change.yield(isEnabled)
    }
  }

  private let clock = ManualClock()
  private let log = LogCapture()

  private var triggers: TriggerSwitch {
    TriggerSwitch(clock: clock, now: { [clock] in clock.now.offset }, logger: log.logger())
  }

  @Test("Being off ends by itself, and each request for it begins the time again")
  func lease() {
    var lease = TriggerLease()
    #expect(lease.isOn && lease.timeLeft(at: .seconds(5)) == nil)
    let isNews = [lease.switchOff(at: .seconds(5)), lease.switchOff(at: .seconds(65))]
    #expect(isNews == [true, false])
    #expect(lease.offSince == .seconds(5))
    #expect(lease.timeLeft(at: .seconds(65)) == TriggerLease.offMax)
    #expect(lease.timeLeft(at: .seconds(10_000)) == .zero)
    let wasOff = [lease.switchOn(), lease.switchOn()]
    #expect(wasOff == [true, false] && lease.isOn)
  }

  @Test("A switch logs that triggers are off, and how many events they missed when they are on")
  func logs() async throws {
    let (triggers, target) = (triggers, Target())
    try await triggers.set(enabled: true, in: target)
    #expect(log.entries.isEmpty)
    target.pass(4)
    try await triggers.set(enabled: false, in: target)
    try await triggers.set(enabled: false, in: target)
    target.pass(3)
    #expect(!triggers.isEnabled && !target.isEnabled)
    clock.advance(by: .seconds(60))
    #expect(triggers.off?.since == .seconds(60))
    #expect(triggers.off?.left == TriggerLease.offMax - .seconds(60))
    try await triggers.set(enabled: true, in: target)
    #expect(triggers.isEnabled && target.isEnabled && triggers.off == nil)

    let lines = log.entries(atLeast: .warning)
    #expect(
      lines.map(\.message) == [
        "Triggers are off: events reach no function, and are lost to them",
        "Triggers are on again",
      ]
    )
    #expect(lines.last?.metadata["events.skipped"] == "3")
  }

  @Test("Triggers whose switcher has gone are on again, with a warning, and not before")
  func expires() async throws {
    let (triggers, target) = (triggers, Target())
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await triggers.run(target) }
      var changes = target.changes.makeAsyncIterator()
      try await triggers.set(enabled: false, in: target)
      _ = await changes.next()
      await clock.waitForSleepers()
      clock.advance(by: .seconds(300))
      try await triggers.set(enabled: false, in: target)
      _ = await changes.next()
      // The first period has ended, but the second request still applies.
      clock.advance(by: .seconds(300))
      await clock.waitForSleepers()
      #expect(!target.isEnabled && !triggers.isEnabled)
      clock.advance(by: .seconds(300))
      #expect(await changes.next() == true)
      await eventually("the triggers are enabled") { triggers.isEnabled }
      #expect(log.entries(atLeast: .warning).last?.message.contains("has ended") == true)
      group.cancelAll()
    }
  }
}
