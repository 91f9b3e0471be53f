/// A function that Hearth and Cloud Run can host: a name, a trigger and a handler.
///
/// The conforming types are `OnCall`, `OnDocumentCreated`, `OnRequest` and so on, each named as in
/// Firebase. Do not conform other types to this protocol. A declaration is a plain value, usually a
/// computed property of a struct that holds the dependencies of the handler. A test can run the
/// handler:
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
  /// The event or request that the handler receives.
  associatedtype Input
  /// The type of the value that the handler returns.
  associatedtype Output

  /// The description of the function that a `FunctionsApp` uses to host it.
  var definition: FunctionDefinition { get }

  /// Runs the handler directly, without sockets, tokens or encoding.
  ///
  /// Rethrows the error of the handler.
  @discardableResult
  func run(_ input: Input) async throws -> Output
}

extension CloudFunction {
  /// The name under which the function is deployed and called.
  public var name: String { definition.name }
}
