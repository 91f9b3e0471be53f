package import HTTPTypes
package import NIOCore
package import RuntimeSupport
import Synchronization

/// The contract for running functions, between senders of requests and owners of workers.
///
/// The senders are the gateway and trigger delivery.
package protocol FunctionInvoker: Sendable {
  /// Sends one request to a worker of the function and returns its reply.
  ///
  /// Waits for a free worker and starts one if necessary. The function's `timeoutSeconds`, or a
  /// shorter `request.timeout`, limits the run from the moment a worker receives the request. When
  /// the limit is exceeded, the error is `.timedOut`. A wait of that length for a worker also ends
  /// with `.timedOut`.
  ///
  /// Requests that the server itself sends for events, schedules and tasks wait as long as the
  /// owner of the workers decides. Their wait ends with `.overloaded`: the request never ran and
  /// may be sent again. If there is no place for another worker, the wait is shorter and the error
  /// is `.placesTaken`.
  ///
  /// Returns once the head of the reply has arrived; the deadline also applies to the body.
  /// Cancelling the task, or dropping the body unread, ends the invocation.
  ///
  /// Throws `InvocationError`. Any status that the function itself responds with is a reply, not an
  /// error.
  func invoke(_ request: InvocationRequest) async throws -> InvocationResponse

  /// Starts an invocation as `invoke` does, but without a task.
  ///
  /// `completion` is called once, on any thread, possibly before this method returns. `eventLoop`
  /// is the event loop on which the caller would like `completion` to run. Returns a closure that
  /// ends the invocation, for use when the caller disconnects. The call itself must not block.
  func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<InvocationResponse, any Error>) -> Void
  ) -> @Sendable () -> Void
}

extension FunctionInvoker {
  package func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<InvocationResponse, any Error>) -> Void
  ) -> @Sendable () -> Void {
    // The caller controls the task: it either cancels it or waits for its completion.
    let task = Task {
      do {
        completion(.success(try await invoke(request)))
      } catch {
        completion(.failure(error))
      }
    }
    return { task.cancel() }
  }
}

/// One request to a function.
package struct InvocationRequest: Sendable {
  /// The 20-character id that marks the invocation in the logs of server, worker and function.
  package var id: String
  package var function: String
  /// The path and headers as the function will see them.
  package var head: HTTPRequest
  package var body: Body
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
    body: Body,
    timeout: Duration? = nil
  ) {
    self.id = id
    self.function = function
    self.head = head
    self.body = body
    self.timeout = timeout
  }

  /// The body: whole for callables and events, streamed for a plain HTTP function.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// A body for one reader, once; throws if the client disconnects or sends too much.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)
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

  /// The W3C trace context header, which places the request in a trace.
  package static let traceHeader = fieldName("traceparent")

  /// The header that names the delivery that causes the invocation; see `EventCause`.
  package static let causeHeader = fieldName("x-hearth-cause")
}

/// A function's reply.
package struct InvocationResponse: Sendable {
  package var head: HTTPResponse
  package var body: Body

  package init(head: HTTPResponse, body: Body) {
    self.head = head
    self.body = body
  }

  /// The body: whole if it is small and its length was announced, streamed otherwise.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// A body that arrives in pieces; throws `InvocationError` if the worker dies or time runs out.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)
    /// A body produced while it is written: the closure runs the function in the writer's task.
    case produced(@Sendable (_ write: @escaping Write) async throws -> Void)

    /// A function that accepts the next piece of a body and returns when there is room for more.
    package typealias Write = @Sendable (ByteBuffer) async throws -> Void

    /// Returns the whole body; throws an `InvocationError` of kind `.failed` beyond `bytesMax`.
    package func collect(upTo bytesMax: Int) async throws -> ByteBuffer {
      switch self {
      case .whole(let buffer): return buffer
      case .stream(let chunks):
        let collected = Collected(bytesMax: bytesMax)
        for try await chunk in chunks { try collected.append(chunk) }
        return collected.bytes
      case .produced(let produce):
        let collected = Collected(bytesMax: bytesMax)
        try await produce { try collected.append($0) }
        return collected.bytes
      }
    }

    private final class Collected: Sendable {
      private let bytesMax: Int
      private let buffer = Mutex(ByteBuffer())

      init(bytesMax: Int) {
        self.bytesMax = bytesMax
      }

      var bytes: ByteBuffer { buffer.withLock { $0 } }

      func append(_ chunk: ByteBuffer) throws {
        try buffer.withLock { buffer in
          guard buffer.readableBytes + chunk.readableBytes <= bytesMax else {
            throw InvocationError(.failed, "The function's reply is longer than \(bytesMax) bytes.")
          }
          buffer.writeImmutableBuffer(chunk)
        }
      }
    }
  }
}

/// The reason why an invocation has no reply.
package struct InvocationError: StatusConvertible, CustomStringConvertible {
  package var kind: Kind
  package var message: String
  /// True if the worker that died was also running other invocations.
  ///
  /// In that case it is unknown which invocation is at fault.
  package var isShared: Bool

  /// Creates an error with a sentence for the log.
  ///
  /// Each endpoint decides how much of it clients see.
  package init(_ kind: Kind, _ message: String, isShared: Bool = false) {
    self.kind = kind
    self.message = message
    self.isShared = isShared
  }

  /// The kind of failure.
  package enum Kind: Sendable, Hashable {
    /// No deployed function has this name.
    case notFound
    /// Too many invocations are waiting, or this one, sent by the server itself, waited too long.
    case overloaded
    /// The time ran out, in a worker or while waiting for a worker.
    ///
    /// A worker that was running the invocation was asked to stop.
    case timedOut
    /// The worker died while it ran this invocation.
    case crashed
    /// No worker could be started.
    case cannotStart
    /// No place for another worker became free in time.
    ///
    /// The message lists the functions whose workers hold the places.
    case placesTaken
    /// The server is stopping or the deployment was replaced; the caller should retry.
    case drained
    /// The communication with the worker failed in another way.
    case failed
  }

  package var statusCode: StatusCode {
    switch kind {
    case .notFound: .notFound
    case .overloaded: .resourceExhausted
    case .timedOut: .deadlineExceeded
    case .cannotStart, .placesTaken, .drained: .unavailable
    case .crashed, .failed: .internal
    }
  }

  package var statusMessage: String { message }
  package var description: String { "invocation: \(message)" }
}

/// The advice of a failing event handler on retrying the event.
///
/// `FunctionsRuntime` sets it on its reply, and trigger delivery reads it.
package enum RetryAdvice: Sendable, Hashable {
  /// Do not retry: the event can only fail.
  case never
  /// Retry after the back-off delay, but no earlier than after this many seconds.
  case after(seconds: Double)
  /// Retry after this many seconds instead of the back-off delay.
  case exactlyAfter(seconds: Double)

  /// The reply header that carries the advice: `never`, `after=SECONDS` or `exactly-after=SECONDS`.
  package static let header = fieldName("x-hearth-retry")

  /// The advice as header text.
  package var headerValue: String {
    switch self {
    case .never: "never"
    case .after(let seconds): "after=\(seconds)"
    case .exactlyAfter(let seconds): "exactly-after=\(seconds)"
    }
  }

  /// Parses the header text; nil if it has none of the forms.
  package init?(headerValue: String) {
    if headerValue == "never" {
      self = .never
      return
    }
    let words = headerValue.split(separator: "=", maxSplits: 1)
    guard words.count == 2, let seconds = Double(words[1]), seconds >= 0, seconds.isFinite else {
      return nil
    }
    switch words[0] {
    case "after": self = .after(seconds: seconds)
    case "exactly-after": self = .exactlyAfter(seconds: seconds)
    default: return nil
    }
  }
}

/// Returns the header name of a literal; a malformed literal is a programming error.
package func fieldName(_ literal: StaticString) -> HTTPField.Name {
  guard let name = HTTPField.Name(literal.description) else {
    preconditionFailure("\(literal) is not a header name")
  }
  return name
}
