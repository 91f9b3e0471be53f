/// An error with a status to send to the client.
package protocol StatusConvertible: Error {
  var statusCode: StatusCode { get }

  /// The message sent to the client; never contains secrets or document contents.
  var statusMessage: String { get }

  /// Further details for programs; empty by default.
  var statusDetails: [StatusDetail] { get }
}

extension StatusConvertible {
  package var statusDetails: [StatusDetail] { [] }
}
