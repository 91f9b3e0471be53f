import Events
public import FunctionsRuntime
import HTTPMessages
import Identifiers
import Invocation
import Manifests
import NIOCore
import StatusCodes
import TriggerDelivery

extension FunctionsSuite {
  // MARK: - Schedules and services

  /// Runs a scheduled function now, regardless of its schedule, and settles.
  ///
  /// Returns the delivery of the run after all its retries. Throws `noSuchFunction` for a function
  /// that the suite does not have, and records the issues of `settle`. A failed run is none.
  @discardableResult
  public func runSchedule(
    _ function: OnSchedule,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column
  ) async throws -> EventDelivery {
    let id = try await core.deliveries.schedules.runNow(core.definition(of: function).name)
    try await settle(fileID: fileID, filePath: filePath, line: line, column: column)
    return EventDelivery(try await core.deliveries.administration.show(id))
  }

  /// Publishes an event of another service with data that is encoded as JSON.
  ///
  /// Call `settle` afterwards. The event passes through the event log like any other event and
  /// reaches each `OnCloudEvent` for its type and attributes. No function has to match. Dates in
  /// the data are encoded in RFC 3339 format. Throws `FunctionsTestingError` with the kind
  /// `invalidEvent` for data that does not encode.
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

  /// Publishes an event of another service with bytes as its data.
  ///
  /// Call `settle` afterwards. Throws only if the suite itself has failed.
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

  /// Sends a document event made by the test to one function, as if the document had changed.
  ///
  /// The event passes through the protocol: it is encoded, and the function decodes it and captures
  /// its params from the path. Nothing is written, no other function receives the event, and it is
  /// attempted only once. `data` can hold documents as they are stored, or values that encode to
  /// documents.
  ///
  /// Returns the run, even if the function failed or refused the event. Throws `noSuchFunction` for
  /// a function of another kind, and `invalidEvent` for data that does not encode.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: DocumentEvent<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.document(event), to: function)
  }

  /// Sends an event of the Realtime Database made by the test to one function.
  ///
  /// The event passes through the protocol: it is encoded, and the function decodes it and captures
  /// its params from the path. No other function receives it, and it is attempted only once.
  ///
  /// Returns the run, even if the function failed or refused the event. Throws `noSuchFunction` for
  /// a function of another kind, and `invalidEvent` for data that does not encode.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: ValueEvent<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.value(event), to: function)
  }

  /// Sends an event of another service to one function, with bytes or encodable data.
  ///
  /// No other function receives the event, and it is attempted only once. Returns the run, even if
  /// the function failed or refused the event. Throws `noSuchFunction` for a function of another
  /// kind, and `invalidEvent` for data that does not encode.
  @discardableResult
  public func deliver<Payload: Sendable>(
    _ event: CloudEventMessage<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.cloudEvent(event), to: function)
  }

  /// Sends a scheduled run to its function.
  ///
  /// The run is attempted only once. Returns it even if the function failed. Throws
  /// `noSuchFunction` for a function of another kind.
  @discardableResult
  public func deliver(
    _ event: ScheduleEvent,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.schedule(event), to: function)
  }

  /// Sends a task to its function without a queue.
  ///
  /// The task is attempted only once. Returns the run, even if the function failed or refused the
  /// task. Throws `noSuchFunction` for a function of another kind, and `invalidEvent` for data that
  /// does not encode.
  @discardableResult
  public func deliver<Payload: Encodable & Sendable>(
    _ task: TaskRequest<Payload>,
    to function: some CloudFunction
  ) async throws -> FunctionRun {
    try await core.deliver(.task(task), to: function)
  }

  /// Sends a request to an HTTP function and returns the complete response.
  ///
  /// Throws `noSuchFunction` for a function that the suite does not have, and `CallableError` for a
  /// function that timed out.
  @discardableResult
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
    let body = try await request.body.collect(upTo: FunctionLimits.uploadBytesMax)
    do {
      let reply = try await core.invoker.invoke(
        InvocationRequest(
          id: RandomID.make(),
          function: name,
          head: head,
          body: .init(bytes: body)
        )
      )
      let answer = try await reply.body.collect(upTo: FunctionLimits.uploadBytesMax)
      return HTTPFunctionResponse(
        status: reply.head.status,
        headers: reply.head.headerFields,
        body: .bytes(Array(answer.readableBytesView))
      )
    } catch let error as any StatusConvertible {
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
      project: environment.project,
      now: time.now
    )
    do {
      let reply = try await invoker.invoke(request)
      // A body that is produced while it is read is part of the run.
      _ = try await reply.body.collect(upTo: FunctionLimits.bodyBytesMax)
    } catch is any StatusConvertible {
      // The run records the failure, so it need not be thrown.
    }
    guard let run = recorder.run(request.id) else {
      throw FunctionsTestingError(.suiteFailed, "The run of \(function.name) left no trace.")
    }
    return run
  }
}
