/// The way in which an invocation ended.
package struct InvocationEnd: Sendable, Codable, Hashable {
  /// The outcome: `ok`, `refused`, `failed`, `crashed`, `timedOut`, `cancelled` or `notRun`.
  package var outcome: String
  /// The time from the arrival at the worker pool to the end of the response.
  package var milliseconds: Double
  /// The user or the event that made the function run; nil for a request without credentials.
  package var caller: String?
  /// The suite's time in RFC 3339 if it is ahead of the machine's; otherwise nil.
  package var suiteTime: String?

  package init(outcome: String, milliseconds: Double, caller: String?, suiteTime: String? = nil) {
    self.outcome = outcome
    self.milliseconds = milliseconds
    self.caller = caller
    self.suiteTime = suiteTime
  }
}
