/// Why a suite cannot report success.
public struct FunctionsTestingError: Error, Sendable, CustomStringConvertible {
  /// What happened.
  public var kind: Kind
  /// What happened, to what, and what to do.
  public var message: String

  /// The kinds of problem.
  public enum Kind: Sendable, Hashable {
    /// The functions cannot be deployed as they are declared.
    case invalidFunctions
    /// There was still work to do when the time was over.
    case notSettled
    /// Functions sent HTTP requests without a script.
    case unscriptedRequests
    /// No earlier event matches the one to be redelivered.
    case noSuchEvent
    /// The suite has no function of this name, or none of the requested kind.
    case noSuchFunction
    /// An event made by hand cannot be sent to its function.
    case invalidEvent
    /// Functions ran more or less often than a test expected.
    case unexpectedRuns
    /// Security rules cannot be loaded.
    case invalidRules
    /// Security rules allowed, or refused, what a test expected otherwise.
    case unexpectedAccess
    /// The suite itself failed, which is a bug in Hearth.
    case suiteFailed
  }

  init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The message.
  public var description: String { message }
}
