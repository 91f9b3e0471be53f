package import StatusCodes

/// The error for a follower whose records have been trimmed.
///
/// It must read the documents again.
package struct EventsTrimmedError: StatusConvertible, CustomStringConvertible {
  /// The sequence after which the follower requested records.
  package var asked: UInt64
  /// The sequence of the last trimmed record.
  package var trimmedThrough: UInt64

  package var statusCode: StatusCode { .outOfRange }
  package var statusMessage: String {
    "events after \(asked) are kept no longer, those after \(trimmedThrough) are; start over"
  }
  package var description: String { statusMessage }
}
