/// The error of a suite, or of one of its checks outside a test.
///
/// Inside a test of Swift Testing or XCTest the checks do not throw: they record an issue with the
/// error's message at their line, and the test goes on.
public struct FunctionsTestingError: Error, Sendable, CustomStringConvertible {
  /// The kind of problem.
  public var kind: Kind
  /// A description of the problem and of what to do about it.
  public var message: String

  /// The kinds of problems that a suite reports.
  public enum Kind: Sendable, Hashable {
    /// The functions cannot be deployed as they are declared.
    case invalidFunctions
    /// Work was still pending when the time limit or the limit of runs was reached.
    case notSettled
    /// Functions sent HTTP requests for which no response is scripted.
    case unscriptedRequests
    /// A test gave the clock a duration below 0.
    case invalidTime
    /// No earlier event matches the event to redeliver.
    case noSuchEvent
    /// The suite has no function with this name, or it is not of the required kind.
    case noSuchFunction
    /// An event made by a test cannot be sent to its function.
    case invalidEvent
    /// Functions ran more often or less often than a test expected.
    case unexpectedRuns
    /// Security rules cannot be loaded because they have problems or cannot be read.
    case invalidRules
    /// Security rules allowed or refused access contrary to the test's expectation.
    case unexpectedAccess
    /// Auth refused a sign-up or a sign-in.
    case authRefused
    /// The suite itself failed, which is a bug in Hearth.
    case suiteFailed
  }

  init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The text of `message`.
  public var description: String { message }
}
