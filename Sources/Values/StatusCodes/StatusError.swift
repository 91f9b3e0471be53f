/// A plain status error, for modules that need only a code and a sentence.
package struct StatusError: StatusConvertible, CustomStringConvertible, Equatable {
  package var statusCode: StatusCode
  package var statusMessage: String
  package var statusDetails: [StatusDetail]

  /// Creates an error that an endpoint sends to the client unchanged.
  package init(_ code: StatusCode, _ message: String, details: [StatusDetail] = []) {
    self.statusCode = code
    self.statusMessage = message
    self.statusDetails = details
  }

  package var description: String { "\(statusCode.name): \(statusMessage)" }

  /// Returns an `INVALID_ARGUMENT` error, the most common response to bad input.
  package static func invalidArgument(_ message: String) -> StatusError {
    StatusError(.invalidArgument, message)
  }
}
