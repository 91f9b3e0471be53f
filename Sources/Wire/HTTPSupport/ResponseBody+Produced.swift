package import HummingbirdCore
package import NIOCore
import Synchronization

extension ResponseBody {
  /// A body that `produce` writes piece by piece; it is cancelled when the client goes away.
  ///
  /// Each write returns when the connection has room for more and, with `eventLoop`, once the piece
  /// is with the system: a process that dies then has still sent the piece. After `produce` has
  /// returned, writes throw `CancellationError`.
  package init(
    contentLength: Int? = nil,
    producing produce:
      @escaping @Sendable (
        _ write: @escaping @Sendable (ByteBuffer) async throws -> Void
      ) async throws -> Void,
    for client: ClientWatch,
    on eventLoop: (any EventLoop)? = nil
  ) {
    self.init(contentLength: contentLength) { writer in
      let open = OpenWriter(writer, eventLoop)
      defer { open.close() }
      try await client.whileConnected { try await produce { try await open.write($0) } }
      open.close()
      try await writer.finish(nil)
    }
  }

  /// A writer that several tasks may use, until it is closed.
  // Each write uses a copy of the writer, which holds only the connection's own, a Sendable.
  private final class OpenWriter: @unchecked Sendable {
    private let writer: any ResponseBodyWriter
    private let eventLoop: (any EventLoop)?
    private let isClosed = Atomic(false)

    init(_ writer: any ResponseBodyWriter, _ eventLoop: (any EventLoop)?) {
      self.writer = writer
      self.eventLoop = eventLoop
    }

    func close() { isClosed.store(true, ordering: .releasing) }

    func write(_ piece: ByteBuffer) async throws {
      guard !isClosed.load(ordering: .acquiring) else { throw CancellationError() }
      var writer = writer
      try await writer.write(piece)
      // The write is on the loop's list before this task.
      try await eventLoop?.submit {}.get()
    }
  }
}
