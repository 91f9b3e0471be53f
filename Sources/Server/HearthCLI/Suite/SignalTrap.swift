import Foundation
import LibC
import Synchronization

/// The handler of the signals that stop this process, on a thread of its own.
///
/// The thread does not depend on Swift's thread pool, which long-running work may occupy
/// completely.
enum SignalTrap {
  /// The handling of further signals after a received one.
  enum Next {
    /// Further signals are received, too.
    case isReceived
    /// Another signal ends the process at once, by its default action.
    case ends
  }

  /// The write end of the pipe from the signal handler to the thread.
  private static let pipe = Atomic<CInt>(-1)

  /// Calls `receive` for each of `signals`, one at a time, for the life of the process.
  ///
  /// May be called only once. `receive` must not block for long.
  static func install(_ signals: [CInt], _ receive: @escaping @Sendable (CInt) -> Next) {
    var ends: [CInt] = [-1, -1]
    // Without free descriptors, the signals keep their default action, which ends the process.
    guard makePipe(&ends) == 0 else { return }
    let readEnd = ends[0]
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    Self.pipe.store(ends[1], ordering: .sequentiallyConsistent)
    // The thread ends with the process.
    Thread.detachNewThread {
      var byte: UInt8 = 0
      var isEnding = false
      while true {
        let count = read(readEnd, &byte, 1)
        if count < 0, errno == EINTR { continue }
        guard count == 1 else { return }
        // This signal arrived before the default actions were restored.
        if isEnding { kill(getpid(), CInt(byte)) }
        guard receive(CInt(byte)) == .ends else { continue }
        for number in signals { signal(number, SIG_DFL) }
        isEnding = true
      }
    }
    for number in signals {
      signal(number) { number in
        // A signal handler may use only async-signal-safe functions.
        let error = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(SignalTrap.pipe.load(ordering: .relaxed), &byte, 1)
        errno = error
      }
    }
  }

  private static func makePipe(_ ends: inout [CInt]) -> CInt {
    LibC.pipe(&ends)
  }
}
