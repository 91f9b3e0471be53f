package import RuntimeSupport

/// A follower asked for records that are no longer kept; it must read the documents again.
package struct EventsTrimmedError: StatusConvertible, CustomStringConvertible {
  /// The sequence after which records were asked for.
  package var asked: UInt64
  /// The sequence of the last record that is gone.
  package var trimmedThrough: UInt64

  package var statusCode: StatusCode { .outOfRange }
  package var statusMessage: String {
    "events after \(asked) are kept no longer, those after \(trimmedThrough) are; start anew"
  }
  package var description: String { statusMessage }
}
