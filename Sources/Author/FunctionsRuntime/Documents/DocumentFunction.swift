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

  private var type: DocumentEventType {
    DocumentEventType(reading.kind, hasAuthContext: withAuthContext)
  }

  var definition: FunctionDefinition {
    // An app does not start with an invalid pattern, so no event is handled with a nil pattern.
    let parsed = try? PathPattern(pattern)
    let trigger = FunctionDefinition.Trigger.document(type, pattern: pattern)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventInvocation(scope: scope).reply(to: request) { event in
        let input = try input(ReceivedEvent(event), parsed, request, scope)
        return { try await handler(input) }
      }
    }
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
