/// An error that a callable's client may see.
///
/// ```swift
/// guard plan.exists else { throw CallableError(.notFound, "There is no such plan.") }
/// throw CallableError(.resourceExhausted, "Too many plans.", details: ["most": 10])
/// ```
///
/// For any other error that a handler throws, the client gets `INTERNAL` without the text, which
/// goes to the log.
public struct CallableError: Error, Sendable {
  /// The canonical code, which decides the HTTP status; `ok` counts as `internal`.
  public var code: StatusCode
  /// The text that the client shows or logs.
  public var message: String
  /// Further details for the client, encoded as JSON; nil sends none.
  public var details: (any Encodable & Sendable)?

  /// An error for the client.
  public init(_ code: StatusCode, _ message: String, details: (any Encodable & Sendable)? = nil) {
    self.code = code
    self.message = message
    self.details = details
  }
}

extension CallableError: CustomStringConvertible {
  /// The code's name and the message.
  public var description: String { "\(code.name): \(message)" }
}
