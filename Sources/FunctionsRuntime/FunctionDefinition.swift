package import Events
package import Identity
package import Invocation

/// A function as a `FunctionsApp` holds it, its types erased.
public struct FunctionDefinition: Sendable {
  /// What the function is called, and deployed as.
  public package(set) var name: String
  package var trigger: Trigger
  package var options: FunctionOptions
  package var respond: Responder

  /// Answers one request to a function; bad input and a failing handler are answers too.
  package typealias Responder =
    @Sendable (InvocationRequest, FunctionScope) async -> InvocationReply

  /// A function with what answers for it.
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
    /// A change of this kind to a document that matches the pattern.
    ///
    /// The pattern is the author's text; it is checked when the app starts.
    case document(DocumentEventKind, pattern: String)
  }
}

/// What surrounds one invocation.
package struct FunctionScope: Sendable {
  package var options: FunctionOptions
  package var credentials: CredentialReader
  package var logger: Logger
}
