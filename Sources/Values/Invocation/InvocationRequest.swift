package import HTTPMessages
package import HTTPTypes
package import NIOCore

/// One request to a function.
package struct InvocationRequest: Sendable {
  /// The 20-character id that marks the invocation in the logs of server, worker and function.
  package var id: String
  package var function: String
  /// The path and headers as the function will see them.
  package var head: HTTPRequest
  package var body: RequestBody
  /// A limit on the run that is shorter than the function's own timeout; nil for none.
  package var timeout: Duration?
  /// True if the request needs a worker to itself, because it may have crashed another worker.
  package var runsIsolated = false

  /// Creates a request whose body has arrived in full.
  package init(
    id: String,
    function: String,
    head: HTTPRequest,
    body: ByteBuffer,
    timeout: Duration? = nil
  ) {
    self.init(id: id, function: function, head: head, body: .whole(body), timeout: timeout)
  }

  /// Creates a request whose body may still be arriving.
  package init(
    id: String,
    function: String,
    head: HTTPRequest,
    body: RequestBody,
    timeout: Duration? = nil
  ) {
    self.id = id
    self.function = function
    self.head = head
    self.body = body
    self.timeout = timeout
  }

  /// The body of a request that has arrived in full; empty if it is still arriving.
  package var wholeBody: ByteBuffer {
    if case .whole(let buffer) = body { buffer } else { ByteBuffer() }
  }

  /// The request header that carries the invocation's id to a worker.
  package static let idHeader = fieldName("function-execution-id")

  /// The request header that selects the function in a process that runs several functions.
  package static let functionHeader = fieldName("x-hearth-function")

  /// The request header with the attempt number of an event, starting at 1.
  package static let attemptHeader = fieldName("x-hearth-attempt")

  /// The header that names the delivery that causes the invocation; see `EventCause`.
  package static let causeHeader = fieldName("x-hearth-cause")

  /// The request header with the time by which the suite is ahead of the machine, in microseconds.
  ///
  /// A request to a worker has it unless the two times are the same.
  package static let clockLeadHeader = fieldName("x-hearth-clock-lead")
}
