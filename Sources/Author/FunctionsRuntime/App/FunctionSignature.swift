/// The kind that a platform takes a function for, in the Functions Framework's words.
package enum FunctionSignature: String, Sendable, Hashable, CaseIterable {
  /// Any HTTP request, including callables, schedules and tasks.
  case http
  /// An event of the first generation.
  case event
  /// A CloudEvent.
  case cloudevent
  /// Plain JSON in and out.
  case typed

  /// Whether a function with this trigger may have this signature.
  ///
  /// Events of the first generation are mapped to CloudEvents, so event functions fit both.
  func fits(_ trigger: FunctionDefinition.Trigger) -> Bool {
    switch trigger {
    case .document, .cloudEvent: self == .event || self == .cloudevent
    case .typed: self == .typed || self == .http
    case .callable, .http, .schedule, .taskQueue: self == .http
    }
  }

  /// The signature that platforms should give a function with this trigger.
  static func proper(for trigger: FunctionDefinition.Trigger) -> FunctionSignature {
    switch trigger {
    case .document, .cloudEvent: .cloudevent
    case .typed: .typed
    case .callable, .http, .schedule, .taskQueue: .http
    }
  }
}
