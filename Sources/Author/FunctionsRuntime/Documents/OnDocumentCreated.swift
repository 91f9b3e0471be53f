/// A function that runs when a document is created.
///
/// `event.data` is the document.
///
/// ```swift
/// var welcome: OnDocumentCreated<User> {
///   .init("welcome", at: "users/{userId}") { event in
///     let userID = try event.params.userId
///     event.logger.info("Welcome, \(event.data.name) (\(userID))")
///   }
/// }
/// ```
///
/// The document is decoded before the handler runs. A document that does not decode is a permanent
/// failure, which is logged with the path of the invalid field. `OnDocumentCreated<Lenient<User>>`
/// runs the handler for every document and passes the decoding error of an invalid one.
/// `OnDocumentCreated<FirestoreDocument>` receives the document as it is stored, without decoding.
public struct OnDocumentCreated<Payload: Sendable>: CloudFunction {
  private let function: DocumentFunction<Payload>

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler.
  ///
  /// If the event has no params, they are captured from its path. Throws a permanent `EventError`
  /// for a path that does not match the pattern, and rethrows the error of the handler.
  public func run(_ event: DocumentEvent<Payload>) async throws {
    try await function.run(event)
  }
}

extension OnDocumentCreated where Payload: Decodable {
  /// Creates a function that receives decoded documents.
  ///
  /// - Parameters:
  ///   - name: The name under which the function is deployed.
  ///   - pattern: The pattern of the document paths, with wildcards, such as
  ///     `chats/{chatId}/messages/{messageId}`.
  ///   - withAuthContext: True to receive in `event.auth` the caller that caused the change.
  ///   - options: The limits, secrets and other settings with which the function runs.
  ///   - handler: The code that runs for each event. A failed event is retried only if
  ///     `options.retry` allows it.
  public init(
    _ name: String,
    at pattern: String,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .created(.decoded),
      handler
    )
  }
}

extension OnDocumentCreated where Payload == FirestoreDocument {
  /// Creates a function that receives documents as they are stored, without decoding.
  public init(
    _ name: String,
    at pattern: String,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .created(.stored),
      handler
    )
  }
}
