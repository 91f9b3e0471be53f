public import DocumentModel
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The clock of functions, which follows the clock of the emulator or of the test that runs them.
///
/// `hearth clock advance` moves it in the emulator, and `FunctionsSuite.clock` in tests. In
/// production, and in a process that runs no functions, it is the system clock.
public enum FunctionClock {
  /// The current time.
  ///
  /// In the emulator, all tasks of a worker see the jumps that the suite had made before the latest
  /// invocation of that worker. In tests, the tasks of the test and of its functions have the
  /// suite's time; a detached task has the system time.
  public static var now: Timestamp {
    if let test { return test.now() }
    let ahead = microsecondsAhead.load(ordering: .relaxed)
    return Timestamp(microseconds: Timestamp.ofWallClock.microseconds + ahead)
  }

  /// The clock of the test that runs the current task; nil in other tasks.
  @TaskLocal package static var test: TestClock?

  /// A test's clock, in a struct because Swift 6.3 crashes on a task local of a function type with
  /// `-O`.
  package struct TestClock: Sendable {
    package var now: @Sendable () -> Timestamp

    package init(_ now: @escaping @Sendable () -> Timestamp) { self.now = now }
  }

  /// The time by which the suite that runs this process is ahead of the system clock.
  private static let microsecondsAhead = Atomic<Int64>(0)

  /// Advances the clock of this process by the header `InvocationRequest.clockLeadHeader`.
  ///
  /// Requests may arrive out of order, but a suite never sets its time back, so only a larger lead
  /// changes the clock. A missing or malformed header changes nothing.
  static func follow(leadHeader: String?) {
    guard let lead = leadHeader.flatMap(Int64.init) else { return }
    microsecondsAhead.max(min(lead, leadMax), ordering: .relaxed)
  }

  /// Sets the clock of this process to the system clock, for a suite that has begun since.
  static func followNewSuite() { microsecondsAhead.store(0, ordering: .relaxed) }

  /// A thousand years in microseconds, so that no sum of times overflows.
  private static let leadMax: Int64 = 31_557_600_000_000_000
}

extension Timestamp {
  /// The current time of this machine.
  package static var ofWallClock: Timestamp {
    Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }
}
