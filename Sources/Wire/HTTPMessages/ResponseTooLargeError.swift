package import StatusCodes

/// An error for a response that is longer than its reader accepts.
package struct ResponseTooLargeError: StatusConvertible, CustomStringConvertible {
  package var bytesMax: Int

  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  package var statusCode: StatusCode { .internal }
  package var statusMessage: String { "The response is longer than \(bytesMax) bytes." }
  package var description: String { statusMessage }
}
