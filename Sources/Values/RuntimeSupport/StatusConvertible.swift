/// An error that knows which status a client should see.
package protocol StatusConvertible: Error {
  /// The code sent to the client.
  var statusCode: StatusCode { get }

  /// The text sent to the client; never holds secrets or document contents.
  var statusMessage: String { get }

  /// What programs are told besides; nothing unless an error says so.
  var statusDetails: [StatusDetail] { get }
}

extension StatusConvertible {
  /// Nothing.
  package var statusDetails: [StatusDetail] { [] }
}

/// The plain status error, for rooms that need only a code and a sentence.
package struct StatusError: StatusConvertible, CustomStringConvertible, Equatable {
  package var statusCode: StatusCode
  package var statusMessage: String
  package var statusDetails: [StatusDetail]

  /// An error that a door sends to the client as it stands.
  package init(_ code: StatusCode, _ message: String, details: [StatusDetail] = []) {
    self.statusCode = code
    self.statusMessage = message
    self.statusDetails = details
  }

  package var description: String { "\(statusCode.name): \(statusMessage)" }

  /// An `INVALID_ARGUMENT`, the commonest answer to bad input.
  package static func invalidArgument(_ message: String) -> StatusError {
    StatusError(.invalidArgument, message)
  }
}
