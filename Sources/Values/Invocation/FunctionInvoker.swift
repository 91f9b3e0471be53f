package import HTTPTypes
package import NIOCore
package import RuntimeSupport
import Synchronization

/// Runs functions: the contract between senders of work and owners of workers.
///
/// The senders are the gateway and trigger delivery.
package protocol FunctionInvoker: Sendable {
  /// Sends one request to a worker of the function and returns its reply.
  ///
  /// Waits for a free worker, starting one if necessary. The function's `timeoutSeconds`, or a
  /// shorter `request.timeout`, bounds the run from the moment a worker is given the request, and
  /// past it the error is `.timedOut`. A wait that lasts as long ends in the same way; but what the
  /// server itself sends for events, schedules and tasks waits for as long as the owner of the
  /// workers sees fit, and then ends as `.overloaded`: it never ran, and may come again. When no
  /// place for a worker is left the wait is shorter, and the error is `.placesTaken`. Returns once
  /// the head of the reply has arrived; the deadline also bounds the body. Cancelling the task, or
  /// dropping the body unread, ends the invocation.
  ///
  /// Throws `InvocationError`; any status that the function itself answers is a reply, not an
  /// error.
  func invoke(_ request: InvocationRequest) async throws -> InvocationReply

  /// Like `invoke`, but without a task: `completion` is called once, on any thread, even at once.
  ///
  /// `eventLoop` is where the caller wants `completion` to run. Returns a closure that ends the
  /// invocation when the caller leaves. The call itself must not block.
  func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<InvocationReply, any Error>) -> Void
  ) -> @Sendable () -> Void
}

extension FunctionInvoker {
  package func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<InvocationReply, any Error>) -> Void
  ) -> @Sendable () -> Void {
    // The caller owns the task: it cancels it or waits for its completion.
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
  /// The id, 20 characters, that marks the invocation in the logs of server, worker and function.
  package var id: String
  /// The function's name.
  package var function: String
  /// Path and headers as the function shall see them.
  package var head: HTTPRequest
  package var body: Body
  /// A bound of the run shorter than the function's own, or nil.
  package var timeout: Duration?
  /// Whether the request must have a worker for itself, because it may be what crashed another one.
  package var runsApart = false

  /// A request with its id and all of its body.
  package init(
    id: String,
    function: String,
    head: HTTPRequest,
    body: ByteBuffer,
    timeout: Duration? = nil
  ) {
    self.init(id: id, function: function, head: head, body: .whole(body), timeout: timeout)
  }

  /// A request with its id, whose body may still be arriving.
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

  /// The body: whole for callables and events, and as it arrives for a plain HTTP function.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// Read by one reader, once; throws when the client leaves or sends too much.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)
  }

  /// The body of a request that has arrived whole; empty while it is still arriving.
  package var wholeBody: ByteBuffer {
    if case .whole(let buffer) = body { buffer } else { ByteBuffer() }
  }

  /// The request header by which a worker learns the invocation's id.
  package static let idHeader = fieldName("function-execution-id")

  /// The request header that tells a process of many functions which of them is meant.
  package static let functionHeader = fieldName("x-hearth-function")

  /// The request header with the number of an event's attempt, from 1.
  package static let attemptHeader = fieldName("x-hearth-attempt")

  /// The W3C's header with the request's place in a trace.
  package static let traceHeader = fieldName("traceparent")

  /// The header that names the delivery which makes the function run; see `EventCause`.
  package static let causeHeader = fieldName("x-hearth-cause")
}

/// A function's reply.
package struct InvocationReply: Sendable {
  package var head: HTTPResponse
  package var body: Body

  /// A reply with its body.
  package init(head: HTTPResponse, body: Body) {
    self.head = head
    self.body = body
  }

  /// The body: whole if it is small and its length was announced, otherwise as it arrives.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// A body that arrives in pieces; throws `InvocationError` if the worker dies or time runs out.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)
    /// A body made while it is written: the function runs within the closure, in the writer's task.
    case produced(@Sendable (_ write: @escaping Write) async throws -> Void)

    /// Takes the next piece of a body; returns when there is room for more of it.
    package typealias Write = @Sendable (ByteBuffer) async throws -> Void

    /// The whole body; throws `InvocationError` with kind `.failed` past `bytesMax`.
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

/// Why an invocation has no reply.
package struct InvocationError: StatusConvertible, CustomStringConvertible {
  package var kind: Kind
  package var message: String
  /// Whether the worker that died ran other invocations, too; then none of them is known to be at
  /// fault.
  package var isShared: Bool

  /// An error with a sentence for the log; a door decides how much of it a client sees.
  package init(_ kind: Kind, _ message: String, isShared: Bool = false) {
    self.kind = kind
    self.message = message
    self.isShared = isShared
  }

  /// What happened.
  package enum Kind: Sendable, Hashable {
    /// No deployed function has this name.
    case notFound
    /// Too many invocations wait already, or this one, which comes from the log, did for too long.
    case overloaded
    /// The time ran out, in a worker, which was told to stop, or before a worker was free.
    case timedOut
    /// The worker died while it ran this invocation.
    case crashed
    /// No worker could be started.
    case cannotStart
    /// No place for a worker was left in time; the message says which functions hold them.
    case placesTaken
    /// The server is stopping or the deployment was replaced; the caller should try again.
    case drained
    /// The exchange with the worker went wrong in another way.
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

/// How a failing event handler says whether to try again.
///
/// `FunctionsRuntime` sets it on its reply, and trigger delivery reads it.
package enum RetryAdvice: Sendable, Hashable {
  /// Never again: the event can only fail.
  case never
  /// Again, after the growing wait, and after this many seconds at the earliest.
  case after(seconds: Double)
  /// Again, after this many seconds in place of the growing wait.
  case exactlyAfter(seconds: Double)

  /// The reply header that carries the advice: `never`, `after=SECONDS` or `exactly-after=SECONDS`.
  package static let header = fieldName("x-hearth-retry")

  /// The header's text.
  package var headerValue: String {
    switch self {
    case .never: "never"
    case .after(let seconds): "after=\(seconds)"
    case .exactlyAfter(let seconds): "exactly-after=\(seconds)"
    }
  }

  /// Reads the header's text; nil when it has none of the forms.
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

/// A header name written in this source; a malformed one is a bug.
package func fieldName(_ literal: StaticString) -> HTTPField.Name {
  guard let name = HTTPField.Name(literal.description) else {
    preconditionFailure("\(literal) is not a header name")
  }
  return name
}
