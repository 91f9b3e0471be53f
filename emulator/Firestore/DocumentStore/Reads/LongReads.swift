import DequeModule
import Foundation
import RuntimeSupport
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The reads that go on for longer than one part, and what of the event log they still need.
///
/// A read learns from the log what was changed behind it, so the log keeps what it has not seen
/// yet; but not for a read whose client takes nothing for a minute.
package final class LongReads: Sendable {
  private struct Read {
    var sequence: UInt64
    var used: ContinuousClock.Instant
  }

  private struct State {
    var reads: [UInt64: Read] = [:]
    var nextID: UInt64 = 0
  }

  /// How long an idle read keeps the log.
  static let idleMax: Duration = .seconds(60)

  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  /// No reads; `now` tells how long they have been idle.
  package init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
  }

  /// The commit up to which every read knows the event log; nil when none needs it.
  package var neededSequence: UInt64? {
    let now = now()
    return state.withLock { state in
      state.reads.values.lazy.filter { now - $0.used < Self.idleMax }.map(\.sequence).min()
    }
  }

  /// Notes a read that knows the log up to `sequence`, and returns its number.
  func begin(_ sequence: UInt64) -> UInt64 {
    let now = now()
    return state.withLock { state in
      state.nextID += 1
      state.reads[state.nextID] = Read(sequence: sequence, used: now)
      return state.nextID
    }
  }

  /// Notes how far a read knows the log now.
  func advance(_ id: UInt64, to sequence: UInt64) {
    let now = now()
    state.withLock { $0.reads[id] = Read(sequence: sequence, used: now) }
  }

  /// Forgets a read.
  func end(_ id: UInt64) { state.withLock { $0.reads[id] = nil } }
}

/// Runs the later parts of long reads, and what else takes long, on threads of their own, which
/// give way to short work.
///
/// Each part goes to the end of the line, so that all long reads advance alike.
package final class LongWorkExecutor: TaskExecutor {
  /// The process's only one for long reads.
  package static let shared = LongWorkExecutor()
  /// The process's only one for decisions on access, which cannot be cut into parts.
  static let decisions = LongWorkExecutor()

  private let jobs = Mutex<Deque<UnownedJob>>([])
  private let count = DispatchSemaphore(value: 0)

  private init() {
    for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount / 2) {
      Thread.detachNewThread { [self] in
        #if os(Linux)
          // With 0 for the process, Linux means the calling thread. A refusal changes nothing here.
          _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
        #else
          Thread.current.qualityOfService = .utility
        #endif
        while true {
          count.wait()
          jobs.withLock { $0.popFirst() }?.runSynchronously(on: asUnownedTaskExecutor())
        }
      }
    }
  }

  /// Adds a job to the end of the line.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    count.signal()
  }

  private static let niceness: CInt = 5
}
