import DequeModule
import Foundation
import LibC
import Synchronization

/// The reads that take more than one part, and the part of the event log they still need.
///
/// A read finds the changes made since its last part in the log, so the log keeps the records that
/// a read has not seen yet. It does not keep them for a read whose client has been idle for a
/// minute.
package final class LongReads: Sendable {
  private struct Read {
    var sequence: UInt64
    var used: ContinuousClock.Instant
  }

  private struct State {
    var reads: [UInt64: Read] = [:]
    var nextID: UInt64 = 0
  }

  /// The time for which an idle read keeps log records.
  static let idleMax: Duration = .seconds(60)

  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Creates an empty set of reads; `now` is the clock that measures idle time.
  package init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
    self.now = now
  }

  /// The sequence number up to which every read has seen the log; nil if no read needs the log.
  package var neededSequence: UInt64? {
    let now = now()
    return state.withLock { state in
      state.reads.values.lazy.filter { now - $0.used < Self.idleMax }.map(\.sequence).min()
    }
  }

  /// Registers a read that has seen the log up to `sequence`, and returns its ID.
  func begin(_ sequence: UInt64) -> UInt64 {
    let now = now()
    return state.withLock { state in
      state.nextID += 1
      state.reads[state.nextID] = Read(sequence: sequence, used: now)
      return state.nextID
    }
  }

  /// Records that a read has seen the log up to `sequence`.
  func advance(_ id: UInt64, to sequence: UInt64) {
    let now = now()
    state.withLock { $0.reads[id] = Read(sequence: sequence, used: now) }
  }

  func end(_ id: UInt64) { state.withLock { $0.reads[id] = nil } }
}

/// An executor for long work, such as the later parts of long reads.
///
/// It has its own threads, of lower priority than those of short work. Each part joins the end of
/// the queue, so that all long reads advance at the same rate.
package final class LongWorkExecutor: TaskExecutor {
  /// The process's executor for long reads.
  package static let shared = LongWorkExecutor()
  /// The process's executor for access decisions, which cannot be split into parts.
  static let decisions = LongWorkExecutor()

  private let jobs = Mutex<Deque<UnownedJob>>([])
  // Only the threads of this executor wait for it.
  private let count = DispatchSemaphore(value: 0)

  private init() {
    for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount / 2) {
      Thread.detachNewThread { [self] in
        #if os(Linux)
          // With 0 for the process, Linux means the calling thread. If the call fails, the priority
          // stays unchanged, which is acceptable.
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

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    count.signal()
  }

  private static let niceness: CInt = 5
}
