package import StatusCodes

/// The error of an operation that the store refused or that failed.
package struct StorageError: StatusConvertible, CustomStringConvertible {
  package var kind: Kind
  package var message: String
  package var cause: (any Error)?

  /// Creates an error with a message that says what to do.
  package init(_ kind: Kind, _ message: String, cause: (any Error)? = nil) {
    self.kind = kind
    self.message = message
    self.cause = cause
  }

  package enum Kind: Sendable, Hashable {
    /// An expected version did not match. Nothing was applied.
    case conflict
    case closed
    /// The disk is full or not writable. Nothing was applied, and reads still work.
    case full
    /// The files are damaged or belong to another program.
    case corrupt
    /// Another process uses the files.
    case inUse
    /// Any other error that the storage medium reports.
    case failed
  }

  package var statusCode: StatusCode {
    switch kind {
    case .conflict: .aborted
    case .closed: .unavailable
    case .full: .resourceExhausted
    case .corrupt: .dataLoss
    case .inUse: .failedPrecondition
    case .failed: .internal
    }
  }

  package var statusMessage: String { message }
  package var description: String { "storage: \(message)" }

  /// Returns the error for a batch with an expectation that was not met.
  package static func conflict(_ expectation: VersionExpectation) -> StorageError {
    StorageError(
      .conflict,
      "a key of \(expectation.keyspace.name) changed since it was read; read it again and retry"
    )
  }
}
