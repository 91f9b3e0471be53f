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
    /// A later signal ends the process at once, by its default action.
    case ends
  }

  /// The time in which further signals count as the same request to end.
  ///
  /// npm, process managers and a closing terminal send several signals at once.
  private static let repeatTimeMax = Duration.milliseconds(100)

  /// The write end of the pipe from the signal handler to the thread.
  private static let pipe = Atomic<CInt>(-1)

  /// Calls `receive` for each of `signals`, one at a time, for the life of the process.
  ///
  /// An ignored `SIGHUP` stays ignored, so that `nohup` works. May be called only once. `receive`
  /// must not block for long.
  static func install(_ signals: [CInt], _ receive: @escaping @Sendable (CInt) -> Next) {
    var ends: [CInt] = [-1, -1]
    // Without free descriptors, the signals keep their default action, which ends the process.
    guard makePipe(&ends) == 0 else { return }
    let readEnd = ends[0]
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    Self.pipe.store(ends[1], ordering: .sequentiallyConsistent)
    let signals = signals.filter { $0 != SIGHUP || !isIgnored($0) }
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
        discard(from: readEnd, for: repeatTimeMax)
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

  /// Reads and discards the signals that arrive within a time.
  private static func discard(from pipe: CInt, for time: Duration) {
    let end = ContinuousClock.now + time
    var byte: UInt8 = 0
    while case let left = ContinuousClock.now.duration(to: end), left > .zero {
      var input = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
      if poll(&input, 1, CInt(left / .milliseconds(1)) + 1) == 1 { _ = read(pipe, &byte, 1) }
    }
  }

  /// True if the parent process made this process ignore a signal.
  private static func isIgnored(_ number: CInt) -> Bool {
    let handler = signal(number, SIG_IGN)
    signal(number, handler)
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func makePipe(_ ends: inout [CInt]) -> CInt {
    LibC.pipe(&ends)
  }
}
