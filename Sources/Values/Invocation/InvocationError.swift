package import StatusCodes

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
    /// The deployment that has the function is not served: it is still to start, or failed to.
    case unserved
    /// The communication with the worker failed in another way.
    case failed
  }

  package var statusCode: StatusCode {
    switch kind {
    case .notFound: .notFound
    case .overloaded: .resourceExhausted
    case .timedOut: .deadlineExceeded
    case .cannotStart, .placesTaken, .drained, .unserved: .unavailable
    case .crashed, .failed: .internal
    }
  }

  package var statusMessage: String { message }
  package var description: String { "invocation: \(message)" }
}
