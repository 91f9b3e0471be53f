import Foundation
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The signals that stop this process, taken by a thread of their own.
///
/// The thread does not depend on Swift's pool, which work that never waits may occupy.
enum SignalTrap {
  /// What a signal does after the one that was received.
  enum Next {
    /// The next signal is received, too.
    case isReceived
    /// The next signal ends the process at once, by its default action.
    case ends
  }

  /// The write end of the pipe from the signal handler to the thread.
  private static let pipe = Atomic<CInt>(-1)

  /// Hands each of `signals` to `receive`, one after the other, for the rest of the process.
  ///
  /// May be called once. `receive` must not block for long.
  static func install(_ signals: [CInt], _ receive: @escaping @Sendable (CInt) -> Next) {
    var ends: [CInt] = [-1, -1]
    // Without descriptors left the signals keep their default action, which ends the process.
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
        // It came before the default actions were back.
        if isEnding { kill(getpid(), CInt(byte)) }
        guard receive(CInt(byte)) == .ends else { continue }
        for number in signals { signal(number, SIG_DFL) }
        isEnding = true
      }
    }
    for number in signals {
      signal(number) { number in
        // Only what POSIX allows in a signal handler.
        let error = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(SignalTrap.pipe.load(ordering: .relaxed), &byte, 1)
        errno = error
      }
    }
  }

  private static func makePipe(_ ends: inout [CInt]) -> CInt {
    #if canImport(Darwin)
      Darwin.pipe(&ends)
    #elseif canImport(Musl)
      Musl.pipe(&ends)
    #else
      Glibc.pipe(&ends)
    #endif
  }
}
