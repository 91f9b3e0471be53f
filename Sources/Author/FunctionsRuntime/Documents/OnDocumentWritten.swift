/// A function that runs when a document is created, updated or deleted: `event.data` says which.
///
/// ```swift
/// var index: OnDocumentWritten<Message> {
///   .init(
///     "index",
///     at: "chats/{chatId}/messages/{messageId}",
///     options: .init(retry: true)
///   ) { event in
///     switch event.data {
///     case .created(let message), .updated(_, let message, _): try await index.add(message)
///     case .deleted: try await index.remove(try event.params.messageId)
///     }
///   }
/// }
/// ```
///
/// Documents that do not decode are treated as by `OnDocumentCreated`.
public struct OnDocumentWritten<Payload: Sendable>: CloudFunction {
  private let function: DocumentFunction<DocumentWrite<Payload>>

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler; params that the event lacks are read from its path.
  ///
  /// Throws what the handler throws, and a permanent `EventError` for a path that does not match.
  public func run(_ event: DocumentEvent<DocumentWrite<Payload>>) async throws {
    try await function.run(event)
  }
}

extension OnDocumentWritten where Payload: Decodable {
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
    handler: @escaping @Sendable (DocumentEvent<DocumentWrite<Payload>>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .written(.decoded),
      handler
    )
  }
}

extension OnDocumentWritten where Payload == FirestoreDocument {
  /// A function on the documents whose paths match a pattern, as they are stored.
  public init(
    _ name: String,
    at pattern: String,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<DocumentWrite<Payload>>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .written(.stored),
      handler
    )
  }
}
