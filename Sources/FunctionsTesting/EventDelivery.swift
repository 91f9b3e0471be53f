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
  /// The path of the document that changed.
  public let document: String
  /// The kind of event that the function asked for: `created`, `updated`, `deleted` or `written`.
  public let kind: String
  /// Where it stands.
  public let state: State
  /// Handler runs that ended in an answer, since it was last delivered anew.
  public let attempts: Int
  /// Why the last attempt did not succeed.
  public let error: String?

  /// Where a delivery stands.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// To be tried, now or later.
    case pending
    case succeeded
    /// The handler failed and its function does not retry.
    case failed
    /// Given up: the retries are used up, or the error said that none can help.
    case dead
  }

  init(_ delivery: Delivery) {
    id = delivery.id.description
    function = delivery.id.function
    eventID = delivery.id.eventID
    document = delivery.change.name.path.description
    kind = delivery.kind.rawValue
    attempts = delivery.attempts
    error = delivery.lastError
    state =
      switch delivery.state {
      case .pending: .pending
      case .succeeded: .succeeded
      case .failed: .failed
      case .dead: .dead
      }
  }
}
