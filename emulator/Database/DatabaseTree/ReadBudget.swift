/// The amount of stored data that one reader may look at.
final class ReadBudget {
  private var bytesLeft: Int
  private let error: any Error

  /// Creates a budget that throws `error` when it is used up.
  init(bytes: Int, error: any Error) {
    bytesLeft = bytes
    self.error = error
  }

  func spend(_ bytes: Int) throws {
    bytesLeft -= bytes
    if bytesLeft < 0 { throw error }
  }
}

/// The error of a read that is too long to make others wait for it.
struct LongReadError: Error {}
