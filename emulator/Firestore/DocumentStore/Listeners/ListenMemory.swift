/// A listener's account in the memory that a server sets aside for the queues of slow clients.
package protocol ListenMemory: Sendable {
  /// Sets the number of bytes that the listener holds; returns false if too few are available.
  ///
  /// Only one task at a time calls it.
  func hold(_ bytes: Int) -> Bool
  /// Records that the client has taken this many bytes.
  func moved(_ bytes: Int)
}
