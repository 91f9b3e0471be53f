/// A function that runs when a document is created: `event.data` is the document.
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
/// The document is decoded before the handler runs; a document that does not decode is a permanent
/// failure, logged with the path of the field at fault. `OnDocumentCreated<Lenient<User>>` runs the
/// handler for every document, with the reason for one that does not decode, and
/// `OnDocumentCreated<FirestoreDocument>` takes the document as it is stored.
public struct OnDocumentCreated<Payload: Sendable>: CloudFunction {
  private let function: DocumentFunction<Payload>

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler; params that the event lacks are read from its path.
  ///
  /// Throws what the handler throws, and a permanent `EventError` for a path that does not match.
  public func run(_ event: DocumentEvent<Payload>) async throws {
    try await function.run(event)
  }
}

extension OnDocumentCreated where Payload: Decodable {
  /// A function on the documents whose paths match a pattern, decoded.
  ///
  /// - Parameters:
  ///   - name: The name by which the function is deployed.
  ///   - pattern: A document's path with captures, such as `chats/{chatId}/messages/{messageId}`.
  ///   - withAuthContext: Whether `event.auth` says who caused the change.
  ///   - options: How the function is run.
  ///   - handler: What it does; a failing event is tried again if `options.retry` says so.
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
  /// A function on the documents whose paths match a pattern, as they are stored.
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
