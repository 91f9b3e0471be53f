import NIOCore
import NIOWebSocket
import Synchronization

/// The messages to one socket, which are encoded away from the event loop and in order.
///
/// It is the socket for other threads, too.
final class SocketOutlet: MessageOutlet, ConnectedClient {
  /// The number of messages that may wait to be encoded, before the socket is closed.
  private static let messagesMax = 1 << 16

  private struct State {
    var messages: [ServerMessage] = []
    var isDraining = false
    var isClosed = false
  }

  private let state = Mutex(State())
  private let channel: any Channel
  private let socket: NIOLoopBound<DatabaseSocket>

  init(_ socket: DatabaseSocket, _ channel: any Channel) {
    self.channel = channel
    self.socket = NIOLoopBound(socket, eventLoop: channel.eventLoop)
  }

  func send(_ message: ServerMessage) {
    let (starts, isTooSlow) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      guard state.messages.count < Self.messagesMax else {
        state.isClosed = true
        return (false, true)
      }
      state.messages.append(message)
      defer { state.isDraining = true }
      return (!state.isDraining, false)
    }
    if isTooSlow { channel.close(promise: nil) }
    guard starts else { return }
    // This outlet owns the task, which ends once nothing waits.
    Task { drain() }
  }

  func hasRoom() { execute { $0.goOnReading() } }

  func tick(atMilliseconds now: Int64) { execute { $0.tick(atMilliseconds: now) } }

  func disconnect() { channel.close(promise: nil) }

  /// Runs `body` on the socket's event loop.
  func execute(_ body: @escaping @Sendable (DatabaseSocket) -> Void) {
    channel.eventLoop.execute { [socket] in body(socket.value) }
  }

  /// Drops all messages from now on.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.messages = []
    }
  }

  private func drain() {
    while let messages = next() {
      for message in messages {
        let frames = Self.frames(message.json)
        execute { $0.write(frames) }
      }
    }
  }

  private func next() -> [ServerMessage]? {
    state.withLock { state in
      guard !state.messages.isEmpty else {
        state.isDraining = false
        return nil
      }
      defer { state.messages = [] }
      return state.messages
    }
  }

  /// Returns the frames of a message: itself, or the number of its pieces before them.
  private static func frames(_ json: [UInt8]) -> [ByteBuffer] {
    let pieces = MessagePieces.split(json)
    guard pieces.count > 1 else { return [ByteBuffer(bytes: json)] }
    let whole = ByteBuffer(bytes: json)
    return [ByteBuffer(string: String(pieces.count))]
      + pieces.compactMap { whole.getSlice(at: $0.lowerBound, length: $0.count) }
  }
}
