package import Events
package import HTTPMessages
package import Identity
package import Invocation

/// A type-erased function as a `FunctionsApp` holds it.
public struct FunctionDefinition: Sendable {
  /// The name under which the function is called and deployed.
  public package(set) var name: String
  package var trigger: Trigger
  package var options: FunctionOptions
  package var respond: Responder
  /// The work that must succeed in a process before the function is served there.
  package var preparations: [Preparation] = []
  /// The problems of the declaration that the trigger does not show, as sentence endings.
  ///
  /// An app does not start with any.
  package var problems: [String] = []

  /// The closure that responds to a request, even if the input is invalid or the handler throws.
  package typealias Responder =
    @Sendable (InvocationRequest, FunctionScope) async -> Response

  /// Creates a function with the responder that handles its requests.
  package init(
    name: String,
    trigger: Trigger,
    options: FunctionOptions,
    respond: @escaping Responder
  ) {
    self.name = name
    self.trigger = trigger
    self.options = options
    self.respond = respond
  }

  /// The kind of request or event that runs a function.
  package enum Trigger: Sendable, Hashable {
    case callable
    /// A request whose body and response are plain JSON.
    case typed
    /// A plain HTTP request, passed on unchanged.
    case http
    /// A change of a document that matches the pattern.
    ///
    /// The pattern is unchecked text from the declaration. The app checks it at startup.
    case document(DocumentEventType, pattern: String)
    /// A change of a value in the Realtime Database, of an instance and at a path that match.
    ///
    /// Both patterns are unchecked text from the declaration.
    case value(ChangeKind, instance: String, ref: String)
    /// An event of any service, selected by its type and its attributes.
    ///
    /// The app checks the filter at startup.
    case cloudEvent(CloudEventFilter)
    /// A time of the schedule. Schedule and time zone are unchecked text from the declaration.
    case schedule(String, timeZone: String?)
    /// A task of the queue that has the same name as the function.
    case taskQueue(TaskRateLimits)
    /// A sign-up or a sign-in that waits for the function.
    case blocking(BlockingEventType)
  }
}

/// The events of other services that a function accepts.
package struct CloudEventFilter: Sendable, Hashable {
  /// A CloudEvents type, or `*` for every type that is sent to the function.
  package var type: String
  /// Attributes that must be equal to the given values.
  package var attributes: [String: String]
  /// Attributes that must match the given path patterns.
  package var patterns: [String: String]

  /// Creates a filter from the unchecked values of a declaration.
  package init(type: String, attributes: [String: String] = [:], patterns: [String: String] = [:]) {
    self.type = type
    self.attributes = attributes
    self.patterns = patterns
  }

  /// The value of `type` that accepts every type.
  package static let anyType = "*"
}

/// The options, credentials and logger with which one invocation runs.
package struct FunctionScope: Sendable {
  package var options: FunctionOptions
  package var credentials: CredentialReader
  package var debugFeatures = DebugFeatures()
  package var logger: Logger
}

/// The debug features that Firebase's emulator can enable for its functions.
package struct DebugFeatures: Sendable, Hashable {
  /// True if HTTP functions without CORS settings of their own allow pages of all origins.
  package var enablesCORS = false

  /// Creates a set of features, with all of them disabled by default.
  package init(enablesCORS: Bool = false) {
    self.enablesCORS = enablesCORS
  }
}
