/// An open WebSocket that carries texts.
struct MessageSocket: Sendable {
  /// The texts that arrive, for one reader; the sequence ends when the other side closes.
  ///
  /// The sender has to wait while texts are unread.
  var messages: any AsyncSequence<String, any Error> & Sendable
  /// Sends texts one after the other, with none of another call in between.
  var send: @Sendable ([String]) async throws -> Void
}

/// A client for WebSockets.
///
/// It is `URLSession` where that has WebSockets, as on iOS and macOS, and SwiftNIO on Linux, which
/// here has no TLS and so reaches emulators only.
protocol MessageSockets: Sendable {
  /// Opens a socket to a `ws` or `wss` URL, and closes it when `body` ends.
  ///
  /// Throws `DatabaseError` if there is no connection.
  func withSocket(
    _ url: String,
    _ body: @escaping @Sendable (MessageSocket) async throws -> Void
  ) async throws
}

extension DatabaseError {
  static func notConnected(_ reason: any Error) -> DatabaseError {
    DatabaseError(.unavailable, "there is no connection to the database: \(reason)")
  }
}
