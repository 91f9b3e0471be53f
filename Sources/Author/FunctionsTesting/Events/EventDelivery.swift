public import DocumentModel
import Events
import TriggerDelivery

/// The delivery of one event to one function, as recorded in the store of deliveries.
public struct EventDelivery: Sendable, Hashable, Identifiable {
  /// The delivery's id in the form `{commit}.{change}.{function}`.
  public let id: String
  /// The name of the function to which the event is delivered.
  public let function: String
  /// The event's id, which is the same for every function that receives the event.
  public let eventID: String
  /// The path of the changed document, or the subject of another event.
  ///
  /// The subject of a scheduled run is its time, and the subject of a task is its id.
  public let document: String
  /// The kind of event to which the function subscribes.
  ///
  /// It is `created`, `updated`, `deleted` or `written`, a CloudEvents type, `schedule` or `task`.
  public let kind: String
  /// The current state of the delivery.
  public let state: State
  /// The number of handler runs that returned a response since the last redelivery.
  public let attempts: Int
  /// The reason why the last attempt failed, or why no attempt was made; nil if there is none.
  public let error: String?
  /// The id of the delivery whose function caused this event; nil if no function did.
  public let cause: String?
  /// The time at which the delivery was due, or is due next if it is pending.
  public let dueTime: Timestamp

  /// The states of a delivery.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// The delivery will be attempted, now or later.
    case pending
    case succeeded
    /// The handler failed, and its function does not retry.
    case failed
    /// The delivery was abandoned.
    ///
    /// Either its retries are exhausted, its error is permanent, or functions triggered each other
    /// in a loop.
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
