/// A function that runs when a document's fields change: `event.data` has both versions.
///
/// ```swift
/// var notifyShipping: OnDocumentUpdated<Order> {
///   .init("notifyShipping", at: "orders/{orderId}") { event in
///     guard event.data.before.state != event.data.after.state else { return }
///     event.logger.info("Now \(event.data.after.state)")
///   }
/// }
/// ```
///
/// A write that changes no field is no update. Documents that do not decode are treated as by
/// `OnDocumentCreated`.
public struct OnDocumentUpdated<Payload: Sendable>: CloudFunction {
  private let function: DocumentFunction<DocumentUpdate<Payload>>

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler; params that the event lacks are read from its path.
  ///
  /// Throws what the handler throws, and a permanent `EventError` for a path that does not match.
  public func run(_ event: DocumentEvent<DocumentUpdate<Payload>>) async throws {
    try await function.run(event)
  }
}

extension OnDocumentUpdated where Payload: Decodable {
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
    handler: @escaping @Sendable (DocumentEvent<DocumentUpdate<Payload>>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .updated(.decoded),
      handler
    )
  }
}

extension OnDocumentUpdated where Payload == FirestoreDocument {
  /// A function on the documents whose paths match a pattern, as they are stored.
  public init(
    _ name: String,
    at pattern: String,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<DocumentUpdate<Payload>>) async throws -> Void
  ) {
    function = DocumentFunction(
      name,
      pattern,
      withAuthContext,
      options,
      .updated(.stored),
      handler
    )
  }
}
