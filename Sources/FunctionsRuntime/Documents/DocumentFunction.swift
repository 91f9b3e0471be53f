import Events
import Invocation

/// A function on document events of one kind.
struct DocumentFunction<Payload: Sendable>: CloudFunction {
  let name: String
  let kind: DocumentEventKind
  let pattern: String
  let options: FunctionOptions
  let handler: @Sendable (DocumentEvent<Payload>) async throws -> Void
  let decode: @Sendable (ReceivedChange) throws -> Payload

  init(
    _ name: String,
    _ kind: DocumentEventKind,
    _ pattern: String,
    _ options: FunctionOptions,
    _ handler: @escaping @Sendable (DocumentEvent<Payload>) async throws -> Void,
    decode: @escaping @Sendable (ReceivedChange) throws -> Payload
  ) {
    self.name = name
    self.kind = kind
    self.pattern = pattern
    self.options = options
    self.handler = handler
    self.decode = decode
  }

  var definition: FunctionDefinition {
    // An app refuses to start with a bad pattern, so nil never gets to answer an event.
    let parsed = try? PathPattern(pattern)
    let trigger = FunctionDefinition.Trigger.document(kind, pattern: pattern)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventExchange(scope: scope).reply(to: request) { received in
        let event = try event(received, parsed, scope, invocationID: request.id)
        return { try await handler(event) }
      }
    }
  }

  func callAsFunction(_ input: DocumentEvent<Payload>) async throws {
    var event = input
    if event.params.values.isEmpty {
      guard let captures = try PathPattern(pattern).match(event.path) else {
        throw EventError.permanent("The path \(event.path) does not match the pattern \(pattern).")
      }
      event.params = EventParams(captures)
    }
    try await handler(event)
  }

  private func event(
    _ received: ReceivedEvent,
    _ pattern: PathPattern?,
    _ scope: FunctionScope,
    invocationID: String
  ) throws -> DocumentEvent<Payload> {
    guard received.kind == kind else {
      throw ReceivedEvent.Refusal(
        "The function wants \(kind.eventType), not \(received.kind.eventType)."
      )
    }
    let path = received.name.path
    guard let captures = pattern?.match(path) else {
      throw ReceivedEvent.Refusal(
        "The document \(path) does not match the pattern \(self.pattern)."
      )
    }
    var event = DocumentEvent(
      path: "",
      data: try decode(received.change),
      id: received.id,
      time: received.time,
      database: received.name.database,
      params: captures,
      attempt: received.attempt,
      invocationID: invocationID,
      logger: scope.logger
    )
    event.path = path
    return event
  }
}
