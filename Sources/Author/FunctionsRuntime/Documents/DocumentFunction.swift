import Events
import HTTPTypes
import Invocation

/// A function that runs when documents change.
///
/// Its names are `OnDocumentCreated`, `OnDocumentUpdated`, `OnDocumentDeleted` and
/// `OnDocumentWritten`.
public struct DocumentFunction<Trigger: DocumentTrigger>: CloudFunction {
  /// The event that the handler receives.
  public typealias Event = DocumentEvent<Trigger.Data>

  private let name: String
  private let pattern: String
  private let withAuthContext: Bool
  private let options: FunctionOptions
  private let document: @Sendable (FirestoreDocument) throws -> Trigger.Payload
  private let handler: @Sendable (Event) async throws -> Void
  /// The problems of the path's type, as sentence endings.
  private var problems: [String] = []

  private init(
    _ name: String,
    _ pattern: String,
    _ withAuthContext: Bool,
    _ options: EventOptions,
    _ document: @escaping @Sendable (FirestoreDocument) throws -> Trigger.Payload,
    _ handler: @escaping @Sendable (Event) async throws -> Void
  ) {
    self.name = name
    self.pattern = pattern
    self.withAuthContext = withAuthContext
    self.options = options.values
    self.document = document
    self.handler = handler
  }

  /// Creates a function whose handler also receives the path of the document.
  private init<Path: DocumentPath>(
    _ name: String,
    _ path: Path.Type,
    _ withAuthContext: Bool,
    _ options: EventOptions,
    _ document: @escaping @Sendable (FirestoreDocument) throws -> Trigger.Payload,
    _ handler: @escaping @Sendable (Event, Path) async throws -> Void
  ) {
    let pattern = Path.pattern
    let text = pattern.text
    // An app does not start with an invalid pattern, so no event is handled with a nil pattern.
    let parsed = try? PathPattern(text)
    self.init(name, text, withAuthContext, options, document) { event in
      guard let captures = parsed?.match(event.path) else {
        throw EventError.permanent("The path \(event.path) does not match the pattern \(text).")
      }
      let path: Path
      do { path = try pattern.path(from: captures) } catch {
        throw EventError.permanent("The path \(event.path) cannot be read: \(error).")
      }
      try await handler(event, path)
    }
    problems = pattern.problems
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    // An app does not start with an invalid pattern, so no event is handled with a nil pattern.
    let parsed = try? PathPattern(pattern)
    let type = DocumentEventType(Trigger.reading.kind, hasAuthContext: withAuthContext)
    var definition = FunctionDefinition(
      name: name,
      trigger: .document(type, pattern: pattern),
      options: options
    ) { request, scope in
      await EventInvocation(scope: scope).reply(to: request) { event in
        let input = try input(ReceivedEvent(event), type, parsed, request, scope)
        return { try await handler(input) }
      }
    }
    definition.problems = problems
    return definition
  }

  /// Runs the handler.
  ///
  /// If the event has no params, they are captured from its path. Throws a permanent `EventError`
  /// for a path that does not match the pattern, and rethrows the error of the handler.
  public func run(_ event: Event) async throws {
    var event = event
    if event.params.values.isEmpty {
      guard let captures = try PathPattern(pattern).match(event.path) else {
        throw EventError.permanent("The path \(event.path) does not match the pattern \(pattern).")
      }
      event.params = EventParams(captures)
    }
    try await handler(event)
  }

  private func input(
    _ received: ReceivedEvent,
    _ type: DocumentEventType,
    _ pattern: PathPattern?,
    _ request: InvocationRequest,
    _ scope: FunctionScope
  ) throws -> Event {
    guard received.kind == type.kind else {
      throw EventRefusedError(
        "The function wants \(type.name), not \(DocumentEventType(received.kind).name)."
      )
    }
    let path = received.name.path
    guard let captures = pattern?.match(path) else {
      throw EventRefusedError("The document \(path) does not match the pattern \(self.pattern).")
    }
    let data = try Trigger.reading.read(received.change) { document in
      guard let document else {
        throw EventRefusedError("The event lacks a document that its type promises.")
      }
      return try self.document(document)
    }
    var event = DocumentEvent(
      path: "",
      data: data,
      id: received.id,
      time: received.time,
      database: received.name.database,
      params: captures,
      auth: withAuthContext ? received.auth : nil,
      attempt: request.attempt,
      invocationID: request.id,
      logger: scope.logger
    )
    event.path = path
    return event
  }
}

extension DocumentFunction where Trigger.Payload: Decodable {
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
    handler: @escaping @Sendable (DocumentEvent<Trigger.Data>) async throws -> Void
  ) {
    self.init(name, pattern, withAuthContext, options, Self.decoded, handler)
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
    handler: @escaping @Sendable (DocumentEvent<Trigger.Data>, Path) async throws -> Void
  ) {
    self.init(name, path, withAuthContext, options, Self.decoded, handler)
  }

  @Sendable
  private static func decoded(_ document: FirestoreDocument) throws -> Trigger.Payload {
    do {
      return try ValueDecoder().decode(Trigger.Payload.self, from: document.fields)
    } catch {
      throw EventRefusedError(
        "The document \(document.name.path) does not decode as \(Trigger.Payload.self): \(error)."
      )
    }
  }
}

extension DocumentFunction where Trigger.Payload == FirestoreDocument {
  /// Creates a function that receives documents as they are stored, without decoding.
  public init(
    _ name: String,
    at pattern: String,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Trigger.Data>) async throws -> Void
  ) {
    self.init(name, pattern, withAuthContext, options, { $0 }, handler)
  }

  /// Creates a function that receives documents as they are stored, and the ids in their paths.
  public init<Path: DocumentPath>(
    _ name: String,
    path: Path.Type,
    withAuthContext: Bool = false,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (DocumentEvent<Trigger.Data>, Path) async throws -> Void
  ) {
    self.init(name, path, withAuthContext, options, { $0 }, handler)
  }
}

extension InvocationRequest {
  /// The number of this delivery attempt, starting at 1.
  var attempt: Int { head.headerFields[Self.attemptHeader].flatMap { Int($0) } ?? 1 }
}
