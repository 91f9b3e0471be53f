/// An error that is shown to a callable's client.
///
/// ```swift
/// guard plan.exists else { throw CallableError(.notFound, "There is no such plan.") }
/// throw CallableError(.resourceExhausted, "Too many plans.", details: ["most": 10])
/// ```
///
/// Any other error that a handler throws is hidden: the client receives `INTERNAL`, and the text of
/// the error goes to the log.
public struct CallableError: Error, Sendable {
  /// The canonical code, which determines the HTTP status.
  ///
  /// `ok` is treated as `internal`.
  public var code: StatusCode
  /// The text that the client receives, to show or to log.
  public var message: String
  /// Further details for the client, encoded as JSON; nil to send none.
  public var details: (any Encodable & Sendable)?
  /// The handler's own error, which tests tell in place of the client's `INTERNAL`; else nil.
  package var cause: String?

  /// Creates an error with a code, a message and optional details, which the client receives.
  public init(_ code: StatusCode, _ message: String, details: (any Encodable & Sendable)? = nil) {
    self.code = code
    self.message = message
    self.details = details
  }
}

extension CallableError: CustomStringConvertible {
  /// The name of the code, followed by the message; in tests also what the handler threw.
  public var description: String {
    "\(code.name): \(message)" + (cause.map { "\nThe handler threw: \($0)" } ?? "")
  }
}
