@_exported public import FlowControl
@_exported public import StatusCodes

/// The error of a failed call.
public struct FirestoreError: Error, Sendable, CustomStringConvertible {
  /// The status that the server returned or the client determined.
  public var code: StatusCode
  /// A description of the failure and, if possible, of what to do about it.
  public var message: String
  /// True if the server may have carried out the write although it did not confirm it.
  ///
  /// In this case read the current state before you repeat the write, unless the write may happen
  /// twice.
  public package(set) var mayHaveActed: Bool

  /// Creates an error with a status and a message.
  public init(_ code: StatusCode, _ message: String) {
    self.init(code, message, mayHaveActed: false)
  }

  package init(_ code: StatusCode, _ message: String, mayHaveActed: Bool) {
    self.code = code
    self.message = message
    self.mayHaveActed = mayHaveActed
  }

  /// The name of the status, followed by the message.
  public var description: String { "\(code.name): \(message)" }

  /// Creates an error from an error of another module, with the same status and message.
  init(_ error: any StatusConvertible) {
    self.init(error.statusCode, error.statusMessage)
  }
}

extension FirestoreError: StatusConvertible {
  package var statusCode: StatusCode { code }
  package var statusMessage: String { message }
}
