/// A function that runs when a document is deleted.
///
/// `event.data` is the last state of the document.
///
/// ```swift
/// var forget: OnDocumentDeleted<User> {
///   .init("forget", at: "users/{userId}") { event in
///     try await index.remove(try event.params.userId)
///   }
/// }
/// ```
///
/// A document that does not decode is handled as described in `OnDocumentCreated`.
public struct OnDocumentDeleted<Payload: Sendable>: CloudFunction {
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

extension OnDocumentDeleted where Payload: Decodable {
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
      .deleted(.decoded),
      handler
    )
  }

  /// Creates a function that receives decoded documents and the ids in their paths.
  ///
  /// `path` is a type with a property for each id, which the handler receives with its values. In
  /// all other respects it works like `init(_:at:withAuthContext:options:handler:)`. A document
  /// whose ids are not of the properties' types is a permanent failure.
  public init<Path: DocumentPath>(
    _ name: String,
    path: Path.Type,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Payload>, Path) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      path,
      withAuthContext,
      options,
      .deleted(.decoded),
      handler
    )
  }
}

extension OnDocumentDeleted where Payload == FirestoreDocument {
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
      .deleted(.stored),
      handler
    )
  }

  /// Creates a function that receives documents as they are stored, and the ids in their paths.
  public init<Path: DocumentPath>(
    _ name: String,
    path: Path.Type,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Payload>, Path) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      path,
      withAuthContext,
      options,
      .deleted(.stored),
      handler
    )
  }
}
