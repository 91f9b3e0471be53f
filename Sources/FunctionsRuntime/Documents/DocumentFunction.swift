import Events
import HTTPTypes
import Invocation

/// A function on document events of one kind, with or without who caused them.
struct DocumentFunction<Input: DocumentInput>: CloudFunction {
  let name: String
  let pattern: String
  let options: FunctionOptions
  let reading: DocumentReading<Input.Payload>
  let handler: @Sendable (Input) async throws -> Void

  init(
    _ name: String,
    _ pattern: String,
    _ options: FunctionOptions,
    _ reading: DocumentReading<Input.Payload>,
    _ handler: @escaping @Sendable (Input) async throws -> Void
  ) {
    self.name = name
    self.pattern = pattern
    self.options = options
    self.reading = reading
    self.handler = handler
  }

  private var type: DocumentEventType {
    DocumentEventType(reading.kind, hasAuthContext: Input.hasAuthContext)
  }

  var definition: FunctionDefinition {
    // An app refuses to start with a bad pattern, so nil never gets to answer an event.
    let parsed = try? PathPattern(pattern)
    let trigger = FunctionDefinition.Trigger.document(type, pattern: pattern)
    return FunctionDefinition(name: name, trigger: trigger, options: options) { request, scope in
      await EventExchange(scope: scope).reply(to: request) { event in
        let input = try input(ReceivedEvent(event), parsed, request, scope)
        return { try await handler(input) }
      }
    }
  }

  func callAsFunction(_ input: Input) async throws {
    var input = input
    if input.event.params.values.isEmpty {
      let path = input.event.path
      guard let captures = try PathPattern(pattern).match(path) else {
        throw EventError.permanent("The path \(path) does not match the pattern \(pattern).")
      }
      input.event.params = EventParams(captures)
    }
    try await handler(input)
  }

  private func input(
    _ received: ReceivedEvent,
    _ pattern: PathPattern?,
    _ request: InvocationRequest,
    _ scope: FunctionScope
  ) throws -> Input {
    guard received.kind == reading.kind else {
      throw EventRefusal(
        "The function wants \(type.name), not \(DocumentEventType(received.kind).name)."
      )
    }
    let path = received.name.path
    guard let captures = pattern?.match(path) else {
      throw EventRefusal("The document \(path) does not match the pattern \(self.pattern).")
    }
    var event = DocumentEvent(
      path: "",
      data: try reading.read(received.change),
      id: received.id,
      time: received.time,
      database: received.name.database,
      params: captures,
      attempt: request.attempt,
      invocationID: request.id,
      logger: scope.logger
    )
    event.path = path
    return Input(event, auth: received.auth)
  }
}

/// What handlers of document events are given.
protocol DocumentInput: Sendable {
  associatedtype Payload: Sendable

  static var hasAuthContext: Bool { get }
  var event: DocumentEvent<Payload> { get set }

  init(_ event: DocumentEvent<Payload>, auth: EventAuth)
}

extension DocumentEvent: DocumentInput {
  static var hasAuthContext: Bool { false }

  var event: DocumentEvent {
    get { self }
    set { self = newValue }
  }

  init(_ event: DocumentEvent, auth: EventAuth) {
    self = event
  }
}

extension DocumentAuthEvent: DocumentInput {
  static var hasAuthContext: Bool { true }

  init(_ event: DocumentEvent<Payload>, auth: EventAuth) {
    self.init(event: event, auth: auth)
  }
}

extension InvocationRequest {
  /// Which attempt at an event this is, from 1.
  var attempt: Int { head.headerFields[Self.attemptHeader].flatMap { Int($0) } ?? 1 }
}
