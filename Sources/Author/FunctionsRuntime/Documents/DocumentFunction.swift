import Events
import HTTPTypes
import Invocation

/// The common implementation of the four kinds of functions on documents.
struct DocumentFunction<Payload: Sendable>: Sendable {
  private let name: String
  private let pattern: String
  private let withAuthContext: Bool
  private let options: FunctionOptions
  private let reading: DocumentReading<Payload>
  private let handler: @Sendable (DocumentEvent<Payload>) async throws -> Void
  /// The problems of the path's type, as sentence endings.
  private var problems: [String] = []

  init(
    _ name: String,
    _ pattern: String,
    _ withAuthContext: Bool,
    _ options: EventOptions,
    _ reading: DocumentReading<Payload>,
    _ handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void
  ) {
    self.name = name
    self.pattern = pattern
    self.withAuthContext = withAuthContext
    self.options = options.values
    self.reading = reading
    self.handler = handler
  }

  /// Creates a function whose handler also receives the path of the document.
  init<Path: DocumentPath>(
    _ name: String,
    _ path: Path.Type,
    _ withAuthContext: Bool,
    _ options: EventOptions,
    _ reading: DocumentReading<Payload>,
    _ handler: @escaping @Sendable (DocumentEvent<Payload>, Path) async throws -> Void
  ) {
    let pattern = Path.pattern
    let text = pattern.text
    // An app does not start with an invalid pattern, so no event is handled with a nil pattern.
    let parsed = try? PathPattern(text)
    self.init(name, text, withAuthContext, options, reading) { event in
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

  private var type: DocumentEventType {
    DocumentEventType(reading.kind, hasAuthContext: withAuthContext)
  }

  var definition: FunctionDefinition {
    // An app does not start with an invalid pattern, so no event is handled with a nil pattern.
    let parsed = try? PathPattern(pattern)
    let trigger = FunctionDefinition.Trigger.document(type, pattern: pattern)
    var definition = FunctionDefinition(name: name, trigger: trigger, options: options) {
      request,
      scope in
      await EventInvocation(scope: scope).reply(to: request) { event in
        let input = try input(ReceivedEvent(event), parsed, request, scope)
        return { try await handler(input) }
      }
    }
    definition.problems = problems
    return definition
  }

  func run(_ event: DocumentEvent<Payload>) async throws {
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
    _ pattern: PathPattern?,
    _ request: InvocationRequest,
    _ scope: FunctionScope
  ) throws -> DocumentEvent<Payload> {
    guard received.kind == reading.kind else {
      throw EventRefusedError(
        "The function wants \(type.name), not \(DocumentEventType(received.kind).name)."
      )
    }
    let path = received.name.path
    guard let captures = pattern?.match(path) else {
      throw EventRefusedError("The document \(path) does not match the pattern \(self.pattern).")
    }
    var event = DocumentEvent(
      path: "",
      data: try reading.read(received.change),
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

extension InvocationRequest {
  /// The number of this delivery attempt, starting at 1.
  var attempt: Int { head.headerFields[Self.attemptHeader].flatMap { Int($0) } ?? 1 }
}
