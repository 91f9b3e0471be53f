import DatabaseModel
import Events
import HTTPTypes
import Invocation
import StatusCodes

/// A function that runs when values of the Realtime Database change.
///
/// Its names are `OnValueCreated`, `OnValueUpdated`, `OnValueDeleted` and `OnValueWritten`.
public struct ValueFunction<Trigger: ValueTrigger>: CloudFunction {
  /// The event that the handler receives.
  public typealias Event = ValueEvent<Trigger.Data>

  private let name: String
  private let ref: String
  private let instance: String
  private let options: FunctionOptions
  private let handler: @Sendable (Event) async throws -> Void
  /// The problems of the path's type, as sentence endings.
  private var problems: [String] = []

  /// Creates a function that receives decoded values.
  ///
  /// - Parameters:
  ///   - name: The name under which the function is deployed.
  ///   - pattern: The pattern of the paths, with wildcards, such as `presence/{userId}`. A `**`
  ///     matches the value that a write replaces, at any depth.
  ///   - instance: The name of an instance, or a pattern with a `*`.
  ///   - options: The limits, secrets and other settings with which the function runs.
  ///   - handler: The code that runs for each event. A failed event is retried only if
  ///     `options.retry` allows it.
  public init(
    _ name: String,
    at pattern: String,
    instance: String = "*",
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (ValueEvent<Trigger.Data>) async throws -> Void
  ) {
    self.name = name
    self.ref = pattern
    self.instance = instance
    self.options = options.values
    self.handler = handler
  }

  /// Creates a function that receives decoded values and the keys in their paths.
  ///
  /// `path` is a type with a property for each key, which the handler receives with its values. In
  /// all other respects it works like `init(_:at:instance:options:handler:)`. A value whose keys
  /// are not of the properties' types is a permanent failure.
  public init<Path: DocumentPath>(
    _ name: String,
    path: Path.Type,
    instance: String = "*",
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (ValueEvent<Trigger.Data>, Path) async throws -> Void
  ) {
    let pattern = Path.pattern
    self.init(name, at: pattern.text, instance: instance, options: options) { event in
      let path: Path
      do { path = try pattern.path(from: event.params.values) } catch {
        throw EventError.permanent("The path \(event.path) cannot be read: \(error).")
      }
      try await handler(event, path)
    }
    problems = pattern.problems
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    let kind = Trigger.reading.kind
    var definition = FunctionDefinition(
      name: name,
      trigger: .value(kind, instance: instance, ref: ref),
      options: options
    ) { request, scope in
      await EventInvocation(scope: scope).reply(to: request) { event in
        guard event.type == DatabaseEventType(kind).name else {
          throw EventRefusedError(
            "The function wants \(DatabaseEventType(kind).name), not \(event.type)."
          )
        }
        let input = try input(event, request, scope)
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
      do {
        event.params = EventParams(try captures(from: event.path, of: event.instance))
      } catch let error as EventRefusedError {
        throw EventError.permanent(error.message)
      }
    }
    try await handler(event)
  }

  private func captures(
    from path: ResourcePath,
    of instance: String
  ) throws -> [String: String] {
    let pattern = try DatabasePattern(instance: self.instance, ref: ref)
    guard pattern.matches(instance: instance), let captures = pattern.ref.match(path) else {
      throw EventRefusedError(
        "The value \(path) of \(instance) does not match the pattern \(ref) of \(self.instance)."
      )
    }
    return captures
  }

  private func input(
    _ received: CloudEvent,
    _ request: InvocationRequest,
    _ scope: FunctionScope
  ) throws -> Event {
    let values = try ReceivedValues(received)
    let data = try Trigger.reading.read(values) { node in
      do {
        return try node.decode(Trigger.Payload.self)
      } catch let error as ValueCodingError {
        throw EventRefusedError(
          "The value \(values.path) does not decode as \(Trigger.Payload.self): \(error)."
        )
      }
    }
    var event = ValueEvent(
      path: "",
      data: data,
      id: received.id,
      time: received.time.flatMap { Timestamp($0) },
      instance: values.instance,
      params: try captures(from: values.path, of: values.instance),
      authType: received.extensions["authtype"].flatMap { ValueAuthType(rawValue: $0) } ?? .unknown,
      authID: received.extensions["authid"].flatMap { $0.isEmpty ? nil : $0 },
      attempt: request.attempt,
      invocationID: request.id,
      logger: scope.logger
    )
    event.path = values.path
    return event
  }
}
