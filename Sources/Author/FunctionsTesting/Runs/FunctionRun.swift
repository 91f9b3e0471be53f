public import Logging

/// One run of a function: a call, or one attempt at an event.
public struct FunctionRun: Sendable, Hashable {
  /// The function's name.
  public var function: String
  /// The id that follows the run through the log.
  public var invocationID: String
  /// The path of the event's document; nil for calls.
  public var document: String?
  /// The event's id, the same on each delivery; nil for calls.
  public var eventID: String?
  /// The number of the attempt since the event was last redelivered, from 1.
  public var attempt: Int
  /// How the run ended.
  public var outcome: Outcome

  /// How a run ended.
  public enum Outcome: Sendable, Hashable {
    /// It has not ended yet.
    case running
    case succeeded
    /// The run threw, ran out of time or was refused; the text is the error or the client's reply.
    case failed(String)
  }
}

/// One line that a function logged.
public struct FunctionLogLine: Sendable {
  /// The function's name.
  public var function: String
  /// The run that logged it; nil outside of one.
  public var invocationID: String?
  /// The line's level.
  public var level: Logger.Level
  /// The constant message.
  public var message: String
  /// The metadata, as text.
  public var metadata: [String: String]
}
