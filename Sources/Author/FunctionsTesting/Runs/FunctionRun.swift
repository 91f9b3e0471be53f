public import Logging

/// One run of a function, which is either a call or an attempt at an event.
public struct FunctionRun: Sendable, Hashable {
  /// The name of the function that ran.
  public var function: String
  /// The id that identifies the run in the log.
  public var invocationID: String
  /// The path of the event's document; nil for calls.
  public var document: String?
  /// The event's id, which is the same in each delivery of the event; nil for calls.
  public var eventID: String?
  /// The number of the attempt since the last redelivery of the event, starting at 1.
  public var attempt: Int
  /// The outcome of the run, or `running` while it has not ended.
  public var outcome: Outcome

  /// The outcomes of a run.
  public enum Outcome: Sendable, Hashable {
    /// The run has not ended yet.
    case running
    case succeeded
    /// The run threw, timed out or was refused. The text is the logged error or the response body.
    case failed(String)
  }
}

/// One line that a function logged.
public struct FunctionLogLine: Sendable {
  /// The name of the function whose logger wrote the line.
  public var function: String
  /// The id of the run that logged the line; nil if it was logged outside a run.
  public var invocationID: String?
  /// The log level of the line.
  public var level: Logger.Level
  /// The message, without the metadata.
  public var message: String
  /// The metadata, with values as text.
  public var metadata: [String: String]
}
