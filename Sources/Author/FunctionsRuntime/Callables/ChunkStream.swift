import DocumentModel
import HTTPMessages
import NIOCore
import Synchronization

/// The event stream of one call, which carries the chunks and then one final event.
final class ChunkStream: Sendable {
  private enum State {
    case open
    /// The client has disconnected.
    case broken
    case ended
  }

  private let encoder: ValueEncoder
  private let write: Response.Body.Write
  private let state = Mutex(State.open)

  init(encoder: ValueEncoder, write: @escaping Response.Body.Write) {
    self.encoder = encoder
    self.write = write
  }

  /// True if a chunk could not be sent because the client has disconnected.
  var isBroken: Bool { state.withLock { $0 == .broken } }

  /// Sends one chunk, with large integers as plain digits.
  func send(_ chunk: some Encodable) async throws -> Bool {
    var writer = JSONWriter(wrapsIntegers: false)
    writer.append(syntax: #"{"message":"#)
    try writer.append(try encoder.encode(chunk))
    writer.append(syntax: "}")
    guard state.withLock({ $0 == .open }) else { throw CancellationError() }
    do {
      try Task.checkCancellation()
      try await write(ServerSentEvents.frame(writer.bytes))
    } catch {
      state.withLock { $0 = .broken }
      throw CancellationError()
    }
    return true
  }

  /// Sends the envelope with the result or the error, and ends the stream.
  func end(_ envelope: [UInt8]) async throws {
    let wasOpen = state.withLock { state in
      defer { state = .ended }
      return state == .open
    }
    if wasOpen { try await write(ServerSentEvents.frame(envelope)) }
  }
}
