import HTTPTypes
package import HummingbirdCore
package import Invocation
package import NIOCore
import Synchronization

/// A request's body that is read while the request is answered, perhaps by another task.
///
/// Two readers must never read a connection at once, and Hummingbird reads the rest of a body after
/// the answer. The answering task therefore calls `close` last, which waits for the read in
/// progress.
// The iterator belongs to the task that has moved the state to `reading`.
package final class RequestUpload: @unchecked Sendable {
  private enum Phase {
    case idle
    case reading
    case closing(CheckedContinuation<Void, Never>)
    case closed
  }

  private struct State {
    var phase = Phase.idle
    var bytes = 0
    var hasEnded = false
  }

  /// Bodies announced up to this size are read whole at once; streaming them would gain nothing.
  package static let wholeBytesMax = 64 << 10

  private var iterator: RequestBody.AsyncIterator
  private let bytesAnnounced: Int?
  private let bytesMax: Int
  private let state = Mutex(State())

  /// A request's body, read as far as `bytesMax`.
  package init(_ request: Request, upTo bytesMax: Int) {
    self.iterator = request.body.makeAsyncIterator()
    self.bytesAnnounced = request.contentLength
    self.bytesMax = bytesMax
  }

  /// Whether all of the body has been read.
  package var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Whether the body turned out longer than the bound.
  package var isTooLarge: Bool { state.withLock { $0.bytes > bytesMax } }

  /// The pieces as they come.
  ///
  /// Throws `BodyTooLarge` past the bound, and `CancellationError` once `close` was called or when
  /// the client leaves before the end, so that a part is never taken for the whole.
  package var pieces: AsyncThrowingStream<ByteBuffer, any Error> {
    AsyncThrowingStream { try await self.next() }
  }

  /// Stops all further reading; returns once the read in progress has ended.
  package func close() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isClosed = state.withLock { state in
        if case .reading = state.phase {
          state.phase = .closing(continuation)
          return false
        }
        state.phase = .closed
        return true
      }
      if isClosed { continuation.resume() }
    }
  }

  private func next() async throws -> ByteBuffer? {
    let mayRead = try state.withLock { state in
      if state.hasEnded { return false }
      guard case .idle = state.phase else { throw CancellationError() }
      state.phase = .reading
      return true
    }
    guard mayRead else { return nil }
    let piece: Result<ByteBuffer?, any Error>
    do {
      piece = .success(try await iterator.next())
    } catch {
      piece = .failure(error)
    }
    let (bytes, closer) = ended(reading: piece)
    if let closer {
      closer.resume()
      throw CancellationError()
    }
    guard bytes <= bytesMax else { throw BodyTooLarge(bytesMax: bytesMax) }
    let read = try piece.get()
    if read == nil, let bytesAnnounced, bytes < bytesAnnounced { throw CancellationError() }
    return read
  }

  /// Counts what was read.
  private func ended(
    reading piece: Result<ByteBuffer?, any Error>
  ) -> (bytes: Int, closer: CheckedContinuation<Void, Never>?) {
    state.withLock { state in
      if case .success(let read?) = piece {
        state.bytes += read.readableBytes
      } else {
        state.hasEnded = true
      }
      guard case .closing(let closer) = state.phase else {
        state.phase = .idle
        return (state.bytes, nil)
      }
      state.phase = .closed
      return (state.bytes, closer)
    }
  }
}

extension Request {
  /// Whether the request announces a body.
  package var hasBody: Bool {
    headers[.transferEncoding] != nil || (contentLength ?? 0) > 0
  }

  /// The body of a request to a plain HTTP function: whole if it is small, otherwise streamed.
  ///
  /// Close a streamed body with the answer, by `Response.closing`. Throws `BodyTooLarge` at once if
  /// the announced length is too large.
  package func upload(
    upTo bytesMax: Int
  ) async throws -> (body: InvocationRequest.Body, upload: RequestUpload?) {
    if let announced = contentLength, announced > bytesMax {
      throw BodyTooLarge(bytesMax: bytesMax)
    }
    // An answer to HEAD has no body whose end could be awaited.
    let isSmall =
      method == .head || !hasBody || contentLength ?? .max <= RequestUpload.wholeBytesMax
    if isSmall { return (.whole(try await wholeBody(upTo: bytesMax)), nil) }
    let upload = RequestUpload(self, upTo: bytesMax)
    return (.stream(upload.pieces), upload)
  }
}

extension Response {
  /// The same answer, which closes the upload at its end.
  ///
  /// An answer may come before the request's end: it is written first, because the client may wait
  /// for it. An answer that fails closes the connection, which ends the read in progress.
  package func closing(_ upload: RequestUpload?, _ context: HTTPContext) -> Response {
    guard let upload, !upload.hasEnded else { return self }
    let body = body
    var response = self
    response.body = ResponseBody(contentLength: body.contentLength) { writer in
      do {
        try await body.write(writer)
      } catch {
        context.channel.close(promise: nil)
        await upload.close()
        throw error
      }
      await upload.close()
    }
    return response
  }
}
