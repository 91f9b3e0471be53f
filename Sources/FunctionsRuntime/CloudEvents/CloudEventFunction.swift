import DocumentModel
import Events
import Invocation

/// Declares a function on events of any service; the data is JSON and decoded before it runs.
///
/// `type` is the CloudEvents type, such as `google.cloud.storage.object.v1.finalized`, or `*` for
/// whatever is sent to the function. Attributes in `filters` must be equal and those in
/// `pathPatterns` must match, and what these capture is in `event.params`:
///
/// ```swift
/// onCloudEvent(
///   "ordered",
///   type: "com.example.order.v1.placed",
///   filters: ["shop": "berlin"],
///   pathPatterns: ["subject": "orders/{orderId}"],
///   as: Order.self
/// ) { event in
///   let order = try event.params.orderId
///   event.logger.info("\(order): \(event.data.total)")
/// }
/// ```
///
/// Dates in the data are RFC 3339 unless the option `dates` says otherwise. Data that does not
/// decode is a permanent failure, logged with the path at fault.
public func onCloudEvent<Payload: Decodable & Sendable>(
  _ name: String,
  type: String,
  filters: [String: String] = [:],
  pathPatterns: [String: String] = [:],
  as payload: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (CloudEventMessage<Payload>) async throws -> Void
) -> some CloudFunction<CloudEventMessage<Payload>, Void> {
  let filter = CloudEventFilter(type: type, attributes: filters, patterns: pathPatterns)
  return CloudEventFunction(name: name, filter: filter, options: options, handler: handler) {
    event,
    options in
    let contentType = event.dataContentType ?? "application/json"
    guard MediaType(contentType).isJSON else {
      throw EventRefusal("The data of type '\(contentType)' is not JSON.")
    }
    let dialect = ValueDialect.json(dates: options.dates ?? .rfc3339)
    do {
      return try ValueDecoder(dialect: dialect)
        .decode(
          payload,
          from: try JSONText.value(event.data.isEmpty ? Array("null".utf8) : event.data)
        )
    } catch let error as ValueCodingError {
      throw EventRefusal("The event's data does not decode as \(payload): \(error).")
    }
  }
}

/// Declares a function on events of any service, with the data as the bytes that came.
///
/// See the other for `type` and filters.
public func onCloudEvent(
  _ name: String,
  type: String,
  filters: [String: String] = [:],
  pathPatterns: [String: String] = [:],
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (CloudEventMessage<[UInt8]>) async throws -> Void
) -> some CloudFunction<CloudEventMessage<[UInt8]>, Void> {
  let filter = CloudEventFilter(type: type, attributes: filters, patterns: pathPatterns)
  return CloudEventFunction(name: name, filter: filter, options: options, handler: handler) {
    event,
    _ in event.data
  }
}

struct CloudEventFunction<Payload: Sendable>: CloudFunction {
  let name: String
  let filter: CloudEventFilter
  let options: FunctionOptions
  let handler: @Sendable (CloudEventMessage<Payload>) async throws -> Void
  let decode: @Sendable (CloudEvent, FunctionOptions) throws -> Payload

  var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .cloudEvent(filter), options: options) {
      request,
      scope in
      await EventExchange(scope: scope).reply(to: request) { event in
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

  func callAsFunction(_ input: CloudEventMessage<Payload>) async throws {
    var event = input
    if event.params.values.isEmpty {
      do {
        event.params = EventParams(try captures(from: event))
      } catch let error as EventRefusal {
        throw EventError.permanent(error.message)
      }
    }
    try await handler(event)
  }

  /// What the patterns capture; throws when the event is not one that the function wants.
  private func captures(from event: CloudEventMessage<Payload>) throws -> [String: String] {
    guard filter.type == CloudEventFilter.anyType || filter.type == event.type else {
      throw EventRefusal("The function wants \(filter.type), not \(event.type).")
    }
    for (name, value) in filter.attributes {
      guard event.attribute(name) == value else {
        throw EventRefusal(
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
        throw EventRefusal("The attribute \(name), \(value), does not match \(pattern).")
      }
      captures.merge(found) { $1 }
    }
    return captures
  }
}
