public import DocumentModel
import Events
import TriggerDelivery

/// One event on its way to one function, as the deliveries' own store has it.
public struct EventDelivery: Sendable, Hashable, Identifiable {
  /// Names the delivery; `{commit}.{change}.{function}`.
  public let id: String
  /// The function's name.
  public let function: String
  /// The event's id, which every function that it reaches is given.
  public let eventID: String
  /// The path of the document that changed, or what else it is about: the subject of another event,
  /// the time of a scheduled run, the id of a task.
  public let document: String
  /// The kind of event that the function asked for: `created`, `updated`, `deleted` or `written`, a
  /// CloudEvents type, `schedule` or `task`.
  public let kind: String
  /// Where it stands.
  public let state: State
  /// Handler runs that ended in an answer, since it was last delivered anew.
  public let attempts: Int
  /// Why the last attempt did not succeed, or why there was none.
  public let error: String?
  /// The id of the delivery whose function wrote what this event is about; nil where none did.
  public let cause: String?
  /// When it was due, or is due next while it is pending.
  public let dueTime: Timestamp

  /// Where a delivery stands.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// To be tried, now or later.
    case pending
    case succeeded
    /// The handler failed and its function does not retry.
    case failed
    /// Given up: the retries are used up, the error said that none can help, or functions that set
    /// off each other went round in a loop.
    case dead
  }

  init(_ delivery: Delivery) {
    id = delivery.id.description
    function = delivery.id.function
    eventID = delivery.id.eventID
    document = delivery.subject
    kind = delivery.kind
    attempts = delivery.attempts
    error = delivery.lastError
    cause = delivery.cause?.description
    dueTime = delivery.dueTime
    state =
      switch delivery.state {
      case .pending: .pending
      case .succeeded: .succeeded
      case .failed: .failed
      case .dead: .dead
      }
  }
}
