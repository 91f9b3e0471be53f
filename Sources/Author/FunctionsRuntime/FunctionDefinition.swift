package import Events
package import Identity
package import Invocation

/// A function as a `FunctionsApp` holds it, with its types erased.
public struct FunctionDefinition: Sendable {
  /// The name by which the function is called and deployed.
  public package(set) var name: String
  package var trigger: Trigger
  package var options: FunctionOptions
  package var respond: Responder
  /// The work that must succeed in a process before the function is served there.
  package var preparations: [Preparation] = []

  /// Answers one request to a function, even for bad input and a failing handler.
  package typealias Responder =
    @Sendable (InvocationRequest, FunctionScope) async -> InvocationReply

  /// A function with the responder that answers for it.
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

  /// What makes a function run.
  package enum Trigger: Sendable, Hashable {
    case callable
    /// A request whose body and answer are plain JSON.
    case typed
    /// A plain HTTP request, passed on unchanged.
    case http
    /// A change of a document that matches the pattern.
    ///
    /// The pattern is the author's text; it is checked when the app starts.
    case document(DocumentEventType, pattern: String)
    /// An event of any service, by its type and its attributes' values or patterns.
    ///
    /// The filter is checked when the app starts, like a document's pattern.
    case cloudEvent(CloudEventFilter)
    /// The clock; schedule and time zone are the author's text.
    case schedule(String, timeZone: String?)
    /// A task of the queue that has the function's name.
    case taskQueue(TaskRateLimits)
  }
}

/// The events of other services that a function wants.
package struct CloudEventFilter: Sendable, Hashable {
  /// A CloudEvents type, or `*` for every one that reaches the function.
  package var type: String
  /// Attributes that must be equal.
  package var attributes: [String: String]
  /// Attributes that must match a pattern.
  package var patterns: [String: String]

  /// A filter, exactly as the author wrote it.
  package init(type: String, attributes: [String: String] = [:], patterns: [String: String] = [:]) {
    self.type = type
    self.attributes = attributes
    self.patterns = patterns
  }

  /// The type that stands for all types.
  package static let anyType = "*"
}

/// The surroundings of one invocation.
package struct FunctionScope: Sendable {
  package var options: FunctionOptions
  package var credentials: CredentialReader
  package var debugFeatures = DebugFeatures()
  package var logger: Logger
}

/// The features that Firebase's emulator turns on for its functions.
package struct DebugFeatures: Sendable, Hashable {
  /// Whether HTTP functions allow pages of all origins, unless they refuse.
  package var enablesCORS = false

  /// No feature.
  package init(enablesCORS: Bool = false) {
    self.enablesCORS = enablesCORS
  }
}
