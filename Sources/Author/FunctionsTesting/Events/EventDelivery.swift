public import DocumentModel
import Events
import TriggerDelivery

/// One event on its way to one function, as the deliveries' own store holds it.
public struct EventDelivery: Sendable, Hashable, Identifiable {
  /// The delivery's id, `{commit}.{change}.{function}`.
  public let id: String
  /// The function's name.
  public let function: String
  /// The event's id, the same for every function that it reaches.
  public let eventID: String
  /// The path of the changed document, or another subject of the event.
  ///
  /// For other events it is their subject, the time of a scheduled run, or the id of a task.
  public let document: String
  /// The kind of event that the function asked for.
  ///
  /// It is `created`, `updated`, `deleted` or `written`, a CloudEvents type, `schedule` or `task`.
  public let kind: String
  /// The state of the delivery.
  public let state: State
  /// Handler runs that ended in an answer, since it was last redelivered.
  public let attempts: Int
  /// Why the last attempt did not succeed, or why there was none.
  public let error: String?
  /// The id of the delivery whose function caused this event; nil when none did.
  public let cause: String?
  /// When the delivery was due or, while it is pending, is due next.
  public let dueTime: Timestamp

  /// The states of a delivery.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// The delivery is to be tried, now or later.
    case pending
    case succeeded
    /// The handler failed and its function does not retry.
    case failed
    /// The delivery was given up.
    ///
    /// Its retries were used up, its error said that no retry can help, or its functions set off
    /// each other in a loop.
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
