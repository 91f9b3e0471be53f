public import Logging

/// One run of a function: a call, or one attempt at an event.
public struct FunctionRun: Sendable, Hashable {
  /// The function's name.
  public var function: String
  /// Follows the run through the log.
  public var invocationID: String
  /// The path of the document whose event it was; nil for calls.
  public var document: String?
  /// The event's id, the same on each delivery; nil for calls.
  public var eventID: String?
  /// Counts the attempts at an event since it was last delivered anew, from 1.
  public var attempt: Int
  /// How it ended.
  public var outcome: Outcome

  /// How a run ended.
  public enum Outcome: Sendable, Hashable {
    /// It has not ended yet.
    case running
    case succeeded
    /// It threw, ran out of time or was refused; the text is the error's, or the client's reply.
    case failed(String)
  }
}

/// One line that a function logged.
public struct FunctionLogLine: Sendable {
  /// The function's name.
  public var function: String
  /// The run that logged it; nil outside of one.
  public var invocationID: String?
  /// How grave it is.
  public var level: Logger.Level
  /// The constant sentence.
  public var message: String
  /// The facts, as text.
  public var metadata: [String: String]
}
