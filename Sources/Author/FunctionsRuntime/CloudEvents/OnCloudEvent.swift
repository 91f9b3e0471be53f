import Invocation
import DocumentModel
import Events

/// A function that runs on events of any service.
///
/// ```swift
/// var ordered: OnCloudEvent<Order> {
///   .init(
///     "ordered",
///     type: "com.example.order.v1.placed",
///     filters: ["shop": "berlin"],
///     pathPatterns: ["subject": "orders/{orderId}"]
///   ) { event in
///     let orderID = try event.params.orderId
///     event.logger.info("\(orderID): \(event.data.total)")
///   }
/// }
/// ```
///
/// The data must be JSON and is decoded before the handler runs. Data that does not decode is a
/// permanent failure, which is logged with the path of the invalid value. `OnCloudEvent<[UInt8]>`
/// receives the bytes as they were sent.
public struct OnCloudEvent<Payload: Sendable>: CloudFunction {
  private let name: String
  private let filter: CloudEventFilter
  private let options: FunctionOptions
  private let handler: @Sendable (CloudEventMessage<Payload>) async throws -> Void
  private let decode: @Sendable (CloudEvent, FunctionOptions) throws -> Payload

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .cloudEvent(filter), options: options) {
      request,
      scope in
      await EventInvocation(scope: scope).reply(to: request) { event in
        var message = CloudEventMessage(
          type: event.type,
          data: try decode(event, scope.options),
          id: event.id,
          source: event.source,
          subject: event.subject,
          time: event.time.flatMap { Timestamp($0) },
          dataContentType: event.dataContentType,
          dataSchema: event.dataSchema,
          attributes: event.extensions,
          attempt: request.attempt,
          invocationID: request.id,
          logger: scope.logger
        )
        message.params = EventParams(try captures(from: message))
        let input = message
        return { try await handler(input) }
      }
    }
  }

  /// Runs the handler.
  ///
  /// If the event has no params, they are captured from its attributes. Throws a permanent
  /// `EventError` for an event that does not match the filters, and rethrows the error of the
  /// handler.
  public func run(_ event: CloudEventMessage<Payload>) async throws {
    var event = event
    if event.params.values.isEmpty {
      do {
        event.params = EventParams(try captures(from: event))
      } catch let error as EventRefusedError {
        throw EventError.permanent(error.message)
      }
    }
    try await handler(event)
  }

  /// Returns the captures of the path patterns; throws for an event that does not match.
  private func captures(from event: CloudEventMessage<Payload>) throws -> [String: String] {
    guard filter.type == CloudEventFilter.anyType || filter.type == event.type else {
      throw EventRefusedError("The function wants \(filter.type), not \(event.type).")
    }
    for (name, value) in filter.attributes {
      guard event.attribute(name) == value else {
        throw EventRefusedError(
          "The function wants the attribute \(name) to be \(value), "
            + "not \(event.attribute(name) ?? "missing")."
        )
      }
    }
    var captures: [String: String] = [:]
    for (name, pattern) in filter.patterns {
      let value = event.attribute(name) ?? ""
      let path = ResourcePath(slashSeparated: value)
      guard let found = try PathPattern(pattern, ofDocuments: false).match(path) else {
        throw EventRefusedError("The attribute \(name), \(value), does not match \(pattern).")
      }
      captures.merge(found) { $1 }
    }
    return captures
  }
}

extension OnCloudEvent where Payload: Decodable {
  /// Creates a function on events whose data is decoded.
  ///
  /// - Parameters:
  ///   - name: The name under which the function is deployed.
  ///   - type: The CloudEvents type, such as `google.cloud.storage.object.v1.finalized`, or `*` for
  ///     every type of event that is sent to the function.
  ///   - filters: Attributes that must be equal to the given values.
  ///   - pathPatterns: Attributes that must match a path pattern. `event.params` contains the
  ///     captures.
  ///   - options: The limits, secrets and other settings with which the function runs.
  ///   - handler: The code that runs for each event.
  public init(
    _ name: String,
    type: String,
    filters: [String: String] = [:],
    pathPatterns: [String: String] = [:],
    options: CloudEventOptions = CloudEventOptions(),
    handler: @escaping @Sendable (CloudEventMessage<Payload>) async throws -> Void
  ) {
    self.name = name
    self.filter = CloudEventFilter(type: type, attributes: filters, patterns: pathPatterns)
    self.options = options.values
    self.handler = handler
    self.decode = { event, options in
      let contentType = event.dataContentType ?? "application/json"
      guard MediaType(contentType).isJSON else {
        throw EventRefusedError("The data of type '\(contentType)' is not JSON.")
      }
      let dialect = ValueDialect.json(dates: options.dates ?? .rfc3339)
      let json = event.data.isEmpty ? Array("null".utf8) : event.data
      do {
        return try ValueDecoder(dialect: dialect).decode(Payload.self, from: EventJSON.value(json))
      } catch let error as ValueCodingError {
        throw EventRefusedError("The event's data does not decode as \(Payload.self): \(error).")
      }
    }
  }
}

extension OnCloudEvent where Payload == [UInt8] {
  /// Creates a function on events whose data is passed on as the received bytes.
  public init(
    _ name: String,
    type: String,
    filters: [String: String] = [:],
    pathPatterns: [String: String] = [:],
    options: CloudEventOptions = CloudEventOptions(),
    handler: @escaping @Sendable (CloudEventMessage<[UInt8]>) async throws -> Void
  ) {
    self.name = name
    self.filter = CloudEventFilter(type: type, attributes: filters, patterns: pathPatterns)
    self.options = options.values
    self.handler = handler
    self.decode = { event, _ in event.data }
  }
}
