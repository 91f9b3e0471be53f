package import HTTPTypes
package import NIOCore
package import RuntimeSupport

/// Runs functions: the contract between whoever has work (gateway, trigger delivery) and whoever
/// has workers.
package protocol FunctionInvoker: Sendable {
  /// Sends one request to a worker of the function and returns its reply.
  ///
  /// Waits for a free worker, starting one if need be; the wait and the run together are bounded by
  /// the function's `timeoutSeconds` (and by `request.timeout` where that is shorter). Returns once
  /// the head of the reply is there; the deadline also bounds the body. Cancelling the task, or
  /// dropping the body unread, ends the invocation.
  ///
  /// Throws `InvocationError`; whatever status the function itself answers is a reply, not an error.
  func invoke(_ request: InvocationRequest) async throws -> InvocationReply
}

/// One request to a function.
package struct InvocationRequest: Sendable {
  /// Follows the invocation through the logs of server, worker and function; 20 characters.
  package var id: String
  /// The function's name.
  package var function: String
  /// Path and headers as the function shall see them.
  package var head: HTTPRequest
  package var body: ByteBuffer
  /// A bound shorter than the function's own, or nil.
  package var timeout: Duration?

  /// A request with its id.
  package init(
    id: String,
    function: String,
    head: HTTPRequest,
    body: ByteBuffer,
    timeout: Duration? = nil
  ) {
    self.id = id
    self.function = function
    self.head = head
    self.body = body
    self.timeout = timeout
  }

  /// The request header by which a worker learns the invocation's id.
  package static let idHeader = fieldName("function-execution-id")

  /// The request header with the number of an event's attempt, from 1.
  package static let attemptHeader = fieldName("x-hearth-attempt")
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

  /// The body: whole where its length was announced and small, else as it arrives.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// Ends by finishing, or throws `InvocationError` when the worker dies or time runs out.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)

    /// The whole body; throws `InvocationError` with kind `.failed` past `bytesMax`.
    package func collect(upTo bytesMax: Int) async throws -> ByteBuffer {
      switch self {
      case .whole(let buffer): return buffer
      case .stream(let chunks):
        var collected = ByteBuffer()
        for try await var chunk in chunks {
          guard collected.readableBytes + chunk.readableBytes <= bytesMax else {
            throw InvocationError(.failed, "The function's reply is longer than \(bytesMax) bytes.")
          }
          collected.writeBuffer(&chunk)
        }
        return collected
      }
    }
  }
}

/// Why an invocation has no reply.
package struct InvocationError: StatusConvertible, CustomStringConvertible {
  package var kind: Kind
  package var message: String

  /// An error with a sentence for the log; a door decides what of it a client sees.
  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// What happened.
  package enum Kind: Sendable, Hashable {
    /// No deployed function has this name.
    case notFound
    /// Too many wait already.
    case overloaded
    /// The time ran out; the worker was told to stop.
    case timedOut
    /// The worker died while it ran this invocation.
    case crashed
    /// No worker could be started.
    case cannotStart
    /// The server is stopping or the deployment was replaced; trying again is right.
    case drained
    /// The exchange with the worker went wrong in another way.
    case failed
  }

  package var statusCode: StatusCode {
    switch kind {
    case .notFound: .notFound
    case .overloaded: .resourceExhausted
    case .timedOut: .deadlineExceeded
    case .cannotStart, .drained: .unavailable
    case .crashed, .failed: .internal
    }
  }

  package var statusMessage: String { message }
  package var description: String { "invocation: \(message)" }
}

/// How a failing event handler says whether to try again; set by `FunctionsRuntime` on its reply,
/// read by trigger delivery.
package enum RetryAdvice: Sendable, Hashable {
  /// Never again: the event can only fail.
  case never
  /// Again, after this many seconds at the earliest.
  case after(seconds: Double)

  /// The reply header that carries the advice: `never` or `after=SECONDS`.
  package static let header = fieldName("x-hearth-retry")

  /// The header's text.
  package var headerValue: String {
    switch self {
    case .never: "never"
    case .after(let seconds): "after=\(seconds)"
    }
  }

  /// Reads the header's text; nil when it is neither form.
  package init?(headerValue: String) {
    if headerValue == "never" {
      self = .never
    } else if headerValue.hasPrefix("after="), let seconds = Double(headerValue.dropFirst(6)),
      seconds >= 0, seconds.isFinite
    {
      self = .after(seconds: seconds)
    } else {
      return nil
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
