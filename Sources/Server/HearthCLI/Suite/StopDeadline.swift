import EmulatorSuite
import Foundation

/// The bounds of a stop that tasks hold up.
///
/// They are kept by a thread of their own, because tasks may occupy all of Swift's.
enum StopDeadline {
  /// How long requests may still run, as in a stop that nothing holds up.
  private static let requestTimeMax = 1.5
  /// More than a stop takes on a busy machine; what was acknowledged is stored by then in any case.
  private static let timeMax = 4.0

  /// Ends the suite's requests after `requestTimeMax`, and the process with status 1 after `timeMax`.
  ///
  /// A suite that exports at its end may take as long as it needs. Workers end with their server.
  static func begin(for suite: Suite, exports: Bool) {
    // The thread ends with the process.
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: requestTimeMax)
      suite.endRequests()
      guard !exports else { return }
      Thread.sleep(forTimeInterval: timeMax - requestTimeMax)
      Terminal.note(
        "The suite was ended, because its stop took over \(Int(timeMax)) s; what it acknowledged is "
          + "stored."
      )
      Exit.leave(.failed)
    }
  }
}
