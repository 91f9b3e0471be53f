import Foundation

/// The end of a stop that takes too long.
enum StopDeadline {
  /// More than a stop takes on a busy machine; what was acknowledged is stored by then in any case.
  private static let timeMax = 4.0

  /// Ends the process with status 1 if it still runs after `timeMax`.
  ///
  /// Works on a thread of its own, because Swift's pool may be what does not come to an end.
  /// Workers end with their server.
  static func begin() {
    // The thread ends with the process.
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: timeMax)
      Terminal.note(
        "The suite was ended, because its stop took over \(Int(timeMax)) s; what it acknowledged is "
          + "stored."
      )
      Exit.leave(.failed)
    }
  }
}
