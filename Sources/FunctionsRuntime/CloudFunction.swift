/// A function that Hearth and Cloud Run can host: a name, a trigger and a handler.
///
/// Declared by `onCall`, `onDocumentCreated` and their kin; not meant to be conformed to elsewhere.
/// A declaration is a plain value, usually a computed property of a struct that holds what the
/// handler needs, and a test calls it as it would any function:
///
/// ```swift
/// struct ChatFunctions: Sendable {
///   let db: Firestore
///
///   var greet: some CloudFunction<CallableRequest<Greeting>, String> {
///     onCall("greet", Greeting.self) { request in
///       let uid = try request.requireUser()
///       return "Hello, \(request.data.name) (\(uid))"
///     }
///   }
/// }
///
/// let reply = try await functions.greet(CallableRequest(data: greeting, auth: .user("u1")))
/// ```
public protocol CloudFunction<Input, Output>: Sendable {
  /// What the handler is given: an event or a request.
  associatedtype Input
  /// What the handler returns.
  associatedtype Output

  /// What a `FunctionsApp` needs to know in order to host the function.
  var definition: FunctionDefinition { get }

  /// Runs the handler, without sockets, tokens or encoding.
  func callAsFunction(_ input: Input) async throws -> Output
}

extension CloudFunction {
  /// The name by which the function is deployed and called.
  public var name: String { definition.name }
}
