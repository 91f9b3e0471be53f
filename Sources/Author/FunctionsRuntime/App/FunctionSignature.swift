/// The signature type of a function, with the names that the Functions Framework uses.
package enum FunctionSignature: String, Sendable, Hashable, CaseIterable {
  /// A function called with any HTTP request, including callables, schedules and tasks.
  case http
  /// A function called with an event of the first generation.
  case event
  case cloudevent
  /// A function that receives and returns plain JSON.
  case typed

  /// Returns true if a function with this trigger may have this signature.
  ///
  /// First-generation events are converted to CloudEvents, so event functions fit both signatures.
  func fits(_ trigger: FunctionDefinition.Trigger) -> Bool {
    switch trigger {
    case .document, .value, .cloudEvent: self == .event || self == .cloudevent
    case .typed: self == .typed || self == .http
    case .callable, .http, .schedule, .taskQueue, .blocking: self == .http
    }
  }

  /// Returns the signature that a platform should use for a function with this trigger.
  static func proper(for trigger: FunctionDefinition.Trigger) -> FunctionSignature {
    switch trigger {
    case .document, .value, .cloudEvent: .cloudevent
    case .typed: .typed
    case .callable, .http, .schedule, .taskQueue, .blocking: .http
    }
  }
}
