/// Why a suite cannot say that all is well.
public struct FunctionsTestingError: Error, Sendable, CustomStringConvertible {
  /// What happened.
  public var kind: Kind
  /// What happened, to what, and what to do.
  public var message: String

  /// The kinds of trouble.
  public enum Kind: Sendable, Hashable {
    /// The functions cannot be deployed as they are declared.
    case invalidFunctions
    /// There was still something to do when the time was over.
    case notSettled
    /// Functions sent HTTP requests that nothing was scripted for.
    case unscriptedRequests
    /// No earlier event is like the one to be delivered again.
    case noSuchEvent
    /// The suite has no function of the name, or none of the kind that was asked for.
    case noSuchFunction
    /// An event that was made by hand cannot be sent to its function.
    case invalidEvent
    /// Functions ran more or less often than a test expected.
    case unexpectedRuns
    /// The suite itself failed, which is a bug of Hearth.
    case suiteFailed
  }

  init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The message.
  public var description: String { message }
}
