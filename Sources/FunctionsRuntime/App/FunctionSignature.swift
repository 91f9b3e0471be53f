/// What a platform takes a function for, in the Functions Framework's words.
package enum FunctionSignature: String, Sendable, Hashable, CaseIterable {
  /// Any HTTP request: callables, schedules and tasks among them.
  case http
  /// An event of the first generation.
  case event
  /// A CloudEvent.
  case cloudevent
  /// Plain JSON in and out.
  case typed

  /// Whether a function with this trigger can be taken for it.
  ///
  /// Events of the first generation are mapped to CloudEvents, so event functions take both.
  func fits(_ trigger: FunctionDefinition.Trigger) -> Bool {
    switch trigger {
    case .document, .cloudEvent: self == .event || self == .cloudevent
    case .typed: self == .typed || self == .http
    case .callable, .http, .schedule, .taskQueue: self == .http
    }
  }

  /// The name that platforms should give a function with this trigger.
  static func proper(for trigger: FunctionDefinition.Trigger) -> FunctionSignature {
    switch trigger {
    case .document, .cloudEvent: .cloudevent
    case .typed: .typed
    case .callable, .http, .schedule, .taskQueue: .http
    }
  }
}
