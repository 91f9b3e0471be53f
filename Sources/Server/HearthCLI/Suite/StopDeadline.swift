import EmulatorSuite
import Foundation

/// The time limits of a stop, for when tasks block it.
///
/// A separate thread enforces them, because tasks may occupy all threads of Swift's thread pool.
enum StopDeadline {
  /// The time in seconds that requests may still run, as in a regular stop.
  private static let requestTimeMax = 1.5
  /// The time limit in seconds, more than a stop takes on a busy machine.
  ///
  /// Everything acknowledged to clients is stored by then in any case.
  private static let timeMax = 4.0

  /// Ends the suite's requests after `requestTimeMax`, and the process after `timeMax`.
  ///
  /// The process ends with status 1. A suite that exports on exit may take as long as it needs.
  /// Workers end with their server.
  static func begin(for suite: Suite, exports: Bool) {
    // The thread ends with the process.
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: requestTimeMax)
      suite.endRequests()
      guard !exports else { return }
      // On this thread of its own, too.
      Thread.sleep(forTimeInterval: timeMax - requestTimeMax)
      Terminal.note(
        "The suite was ended, because its stop took over \(Int(timeMax)) s; what it acknowledged is "
          + "stored."
      )
      Exit.leave(.failed)
    }
  }
}
