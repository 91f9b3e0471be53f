@_exported public import RuntimeSupport

/// Why a call failed.
public struct FirestoreError: Error, Sendable, CustomStringConvertible {
  /// The status that the server gave or the client decided on.
  public var code: StatusCode
  /// What happened, to what, and if possible what to do.
  public var message: String
  /// Whether the server may have carried out a write although it did not say so.
  ///
  /// If so, look before writing again, unless the write may happen twice.
  public package(set) var mayHaveActed: Bool

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

  /// The error of another room, with that error's status.
  init(_ error: any StatusConvertible) {
    self.init(error.statusCode, error.statusMessage)
  }
}

extension FirestoreError: StatusConvertible {
  package var statusCode: StatusCode { code }
  package var statusMessage: String { message }
}
