import Events
public import FunctionsRuntime
import Invocation
import NIOCore
import RuntimeSupport
import TriggerDelivery

extension FunctionsSuite {
  // MARK: - Schedules and services

  /// Runs a scheduled function now, whatever its schedule says, and settles.
  ///
  /// Gives back what became of the run, its retries included. Throws `noSuchFunction` for a function
  /// without a schedule, and what `settle` throws; a run that fails is no error here.
  @discardableResult
  public func run(_ function: String) async throws -> EventDelivery {
    guard case .schedule? = core.functions[function]?.trigger else {
      throw core.noFunction(function, "runs by a schedule")
    }
    let id = try await core.deliveries.runSchedule(function)
    try await settle()
    return EventDelivery(try await core.deliveries.show(id))
  }

  /// Publishes an event of another service, whose data becomes JSON; `settle` afterwards.
  ///
  /// It reaches every function that `onCloudEvent` declares for its type and attributes, none maybe,
  /// by way of the event log like any other. Dates in the data are written as RFC 3339.
  public func publish(
    type: String,
    source: String = "//test",
    subject: String? = nil,
    attributes: [String: String] = [:],
    id: String? = nil,
    data: some Encodable
  ) async throws {
    let json = try HandMadeEvent.json(data, dates: .rfc3339)
    try await publish(
      type: type,
      source: source,
      subject: subject,
      attributes: attributes,
      id: id,
      contentType: "application/json",
      bytes: json
    )
  }

  /// Publishes an event of another service whose data is these bytes; see the other.
  public func publish(
    type: String,
    source: String = "//test",
    subject: String? = nil,
    attributes: [String: String] = [:],
    id: String? = nil,
    contentType: String,
    bytes: [UInt8]
  ) async throws {
    let event = CloudEvent(
      id: id ?? RandomID.make(),
      source: source,
      type: type,
      subject: subject,
      time: clock.now.description,
      dataContentType: contentType,
      extensions: attributes,
      data: bytes
    )
    try await core.deliveries.publish([event])
  }

  // MARK: - Events made by hand

  /// Sends a document event made by hand to one function, as if the document had been written.
  ///
  /// The event goes through the protocol: it is encoded, and the function decodes it and reads its
  /// parameters from the path. Nothing is written, no other function gets it, and it is tried once.
  /// Gives back the run, also of a function that failed or refused the event. `data` may hold
  /// documents as they are stored or values that encode as such.
  ///
  /// Throws `noSuchFunction` for a function of another kind and `invalidEvent` for data that does not
  /// encode.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: DocumentEvent<Payload>,
    to function: String
  ) async throws -> FunctionRun {
    try await core.deliver(.document(event, auth: nil), to: function)
  }

  /// Sends a document event with its cause to one function; see the other.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: DocumentAuthEvent<Payload>,
    to function: String
  ) async throws -> FunctionRun {
    try await core.deliver(.document(event.event, auth: event.auth), to: function)
  }

  /// Sends an event of another service to one function, with bytes or encodable data; see the other.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: CloudEventMessage<Payload>,
    to function: String
  ) async throws -> FunctionRun {
    try await core.deliver(.cloudEvent(event), to: function)
  }

  /// Sends a scheduled run to its function; see the other.
  @discardableResult
  public func deliver(
    _ event: ScheduleEvent,
    to function: String
  ) async throws -> FunctionRun {
    try await core.deliver(.schedule(event), to: function)
  }

  /// Sends a task to its function without a queue; see the other.
  @discardableResult
  public func deliver<Payload: Encodable & Sendable>(
    _ task: TaskRequest<Payload>,
    to function: String
  ) async throws -> FunctionRun {
    try await core.deliver(.task(task), to: function)
  }

  /// Sends a request to an HTTP function and gives back its whole answer.
  ///
  /// Throws `noSuchFunction`, and `CallableError` for a function that ran out of time.
  public func send(
    _ request: HTTPFunctionRequest,
    to function: String
  ) async throws -> HTTPFunctionResponse {
    guard case .http? = core.functions[function]?.trigger else {
      throw core.noFunction(function, "takes HTTP requests")
    }
    var head = HTTPRequest(
      method: request.method,
      scheme: "http",
      authority: "localhost",
      path: request.query.map { "\(request.path)?\($0)" } ?? request.path
    )
    head.headerFields = request.headers
    let body = try await request.body.collect(upTo: FunctionHost.uploadBytesMax)
    do {
      let reply = try await core.invoker.invoke(
        InvocationRequest(
          id: RandomID.make(),
          function: function,
          head: head,
          body: .init(bytes: body)
        )
      )
      let answer = try await reply.body.collect(upTo: FunctionHost.uploadBytesMax)
      return HTTPFunctionResponse(
        status: reply.head.status,
        headers: reply.head.headerFields,
        body: .bytes(Array(answer.readableBytesView))
      )
    } catch let error as InvocationError {
      throw CallableError(error.statusCode, error.statusMessage)
    }
  }
}

extension SuiteCore {
  func deliver(_ event: HandMadeEvent, to function: String) async throws -> FunctionRun {
    guard let definition = functions[function] else { throw unknownFunction(function) }
    let request = try event.request(
      to: definition,
      project: world.project,
      now: time.now
    )
    do {
      let reply = try await invoker.invoke(request)
      // A body that is made while it is read is part of the run.
      _ = try await reply.body.collect(upTo: FunctionHost.bodyBytesMax)
    } catch is InvocationError {
      // The run tells.
    }
    guard let run = recorder.run(request.id) else {
      throw FunctionsTestingError(.suiteFailed, "The run of \(function) left no trace.")
    }
    return run
  }

  func noFunction(_ name: String, _ deed: String) -> FunctionsTestingError {
    guard functions[name] != nil else { return unknownFunction(name) }
    return FunctionsTestingError(.noSuchFunction, "\(name) is no function that \(deed).")
  }
}
