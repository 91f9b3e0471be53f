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
  /// Returns the run's delivery, retries included. Throws `noSuchFunction` for a function that the
  /// suite does not have, and what `settle` throws; a run that fails is no error here.
  @discardableResult
  public func runSchedule(_ function: OnSchedule) async throws -> EventDelivery {
    let id = try await core.deliveries.schedules.runNow(core.definition(of: function).name)
    try await settle()
    return EventDelivery(try await core.deliveries.administration.show(id))
  }

  /// Publishes an event of another service, whose data becomes JSON; call `settle` afterwards.
  ///
  /// It reaches every `OnCloudEvent` for its type and attributes, which may be none, through the
  /// event log like any other event. Dates in the data are written as RFC 3339.
  /// Throws `FunctionsTestingError` `invalidEvent` for data that does not encode.
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

  /// Publishes an event of another service with these bytes as data; call `settle` afterwards.
  ///
  /// Throws only when the suite itself has failed.
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
  /// parameters from the path. Nothing is written, no other function gets the event, and it is
  /// tried once. Returns the run, even when the function failed or refused the event. `data` may
  /// hold documents as they are stored or values that encode to documents.
  ///
  /// Throws `noSuchFunction` for a function of another kind and `invalidEvent` for data that does
  /// not encode.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: DocumentEvent<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.document(event), to: function)
  }

  /// Sends an event of another service to one function, with bytes or encodable data.
  ///
  /// It is otherwise like a document event and throws the same errors.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: CloudEventMessage<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.cloudEvent(event), to: function)
  }

  /// Sends a scheduled run to its function; otherwise like a document event.
  ///
  /// Throws as that form does.
  @discardableResult
  public func deliver(
    _ event: ScheduleEvent,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.schedule(event), to: function)
  }

  /// Sends a task to its function without a queue; otherwise like a document event.
  ///
  /// Throws as that form does.
  @discardableResult
  public func deliver<Payload: Encodable & Sendable>(
    _ task: TaskRequest<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.task(task), to: function)
  }

  /// Sends a request to an HTTP function and returns its whole answer.
  ///
  /// Throws `noSuchFunction`, and `CallableError` for a function that ran out of time.
  public func send(
    _ request: HTTPFunctionRequest,
    to function: OnRequest
  ) async throws -> HTTPFunctionResponse {
    let name = try core.definition(of: function).name
    var head = HTTPRequest(
      method: request.method,
      scheme: "http",
      authority: "localhost",
      path: request.query.map { "\(request.path)?\($0)" } ?? request.path
    )
    head.headerFields = request.headers
    let body = try await request.body.collect(upTo: InvocationLimits.uploadBytesMax)
    do {
      let reply = try await core.invoker.invoke(
        InvocationRequest(
          id: RandomID.make(),
          function: name,
          head: head,
          body: .init(bytes: body)
        )
      )
      let answer = try await reply.body.collect(upTo: InvocationLimits.uploadBytesMax)
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
  func deliver(
    _ event: HandMadeEvent,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    let definition = try definition(of: function)
    let request = try event.request(
      to: definition,
      project: world.project,
      now: time.now
    )
    do {
      let reply = try await invoker.invoke(request)
      // A body that is produced while it is read is part of the run.
      _ = try await reply.body.collect(upTo: InvocationLimits.bodyBytesMax)
    } catch is InvocationError {
      // The run records the failure.
    }
    guard let run = recorder.run(request.id) else {
      throw FunctionsTestingError(.suiteFailed, "The run of \(function.name) left no trace.")
    }
    return run
  }
}
