@_exported public import RuntimeSupport

/// Why a call failed.
public struct FirestoreError: Error, Sendable, CustomStringConvertible {
  /// The status, as the server gave it or as the client judged.
  public var code: StatusCode
  /// What happened, to what, and where possible what to do.
  public var message: String
  /// Whether the server may have carried out a write although it did not say so.
  package var mayHaveActed: Bool

  /// An error with a status and a sentence.
  public init(_ code: StatusCode, _ message: String) {
    self.init(code, message, mayHaveActed: false)
  }

  package init(_ code: StatusCode, _ message: String, mayHaveActed: Bool) {
    self.code = code
    self.message = message
    self.mayHaveActed = mayHaveActed
  }

  /// The status's name and the message.
  public var description: String { "\(code.name): \(message)" }

  /// The error of another room, with its status.
  init(_ error: any StatusConvertible) {
    self.init(error.statusCode, error.statusMessage)
  }
}

extension FirestoreError: StatusConvertible {
  package var statusCode: StatusCode { code }
  package var statusMessage: String { message }
}
