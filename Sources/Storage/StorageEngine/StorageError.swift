package import RuntimeSupport

/// Why the store refused or failed.
package struct StorageError: StatusConvertible, CustomStringConvertible {
  package var kind: Kind
  package var message: String
  package var cause: (any Error)?

  /// An error with a sentence that says what to do.
  package init(_ kind: Kind, _ message: String, cause: (any Error)? = nil) {
    self.kind = kind
    self.message = message
    self.cause = cause
  }

  /// What went wrong.
  package enum Kind: Sendable, Hashable {
    /// An expected version did not hold; nothing was applied.
    case conflict
    /// The engine has been closed.
    case closed
    /// The disk is full or unwritable; nothing was applied, and reads go on.
    case full
    /// The files are damaged or belong to another program.
    case corrupt
    /// Another process holds the files.
    case inUse
    /// Any other error that the medium reports.
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

  /// The refusal of a batch with an expectation that did not hold.
  package static func conflict(_ expectation: VersionExpectation) -> StorageError {
    StorageError(
      .conflict,
      "a key of \(expectation.keyspace.name) changed since it was read; read it again and retry"
    )
  }
}
