/// A function that Hearth and Cloud Run can host: a name, a trigger and a handler.
///
/// Its types are `OnCall`, `OnDocumentCreated`, `OnRequest` and so on, each named by Firebase's own
/// word; do not conform other types to it. A declaration is a plain value, usually a computed
/// property of a struct that holds what the handler needs, and a test can run its handler:
///
/// ```swift
/// struct ChatFunctions: Sendable {
///   let db: Firestore
///
///   var greet: OnCall<Greeting, String> {
///     .init("greet", callers: .users) { request in
///       "Hello, \(request.data.name)"
///     }
///   }
/// }
///
/// let reply = try await functions.greet.run(CallableRequest(data: greeting, auth: .user("u1")))
/// ```
public protocol CloudFunction<Input, Output>: Sendable {
  /// What the handler is given: an event or a request.
  associatedtype Input
  /// What the handler returns.
  associatedtype Output

  /// What a `FunctionsApp` needs to know in order to host the function.
  var definition: FunctionDefinition { get }

  /// Runs the handler, without sockets, tokens or encoding.
  ///
  /// Throws what the handler throws.
  func run(_ input: Input) async throws -> Output
}

extension CloudFunction {
  /// The name by which the function is deployed and called.
  public var name: String { definition.name }
}
