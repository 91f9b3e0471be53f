/// The share of a server's memory for slow readers that one listener's queue takes.
package protocol ListenMemory: Sendable {
  /// Holds exactly so many bytes from now on; false when there are too few.
  ///
  /// One task at a time calls it.
  func hold(_ bytes: Int) -> Bool
  /// Notes that the client has taken so many bytes.
  func moved(_ bytes: Int)
}
