import HTTPTypes
package import HummingbirdCore
package import NIOCore
import Synchronization

/// A request's body that is read while the request is answered, perhaps by another task.
///
/// A connection's bytes must never be read by two at once, and Hummingbird reads what is left of a
/// body after the answer: whoever answers calls `close` last, which waits for the read under way.
// The iterator belongs to whoever has moved the state to `reading`.
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
  /// Throws `BodyTooLarge` past the bound, and `CancellationError` once `close` was called or when the
  /// client leaves before the end, so that a part is never taken for the whole.
  package var pieces: AsyncThrowingStream<ByteBuffer, any Error> {
    AsyncThrowingStream { try await self.next() }
  }

  /// Lets nobody read any more; returns once the read under way has come to its end.
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

  /// The body of a request to a plain HTTP function: what is small is whole, the rest is streamed.
  ///
  /// Throws `BodyTooLarge` where the announced length tells already.
  package func upload(
    upTo bytesMax: Int
  ) async throws -> (whole: ByteBuffer, stream: RequestUpload?) {
    if let announced = contentLength, announced > bytesMax {
      throw BodyTooLarge(bytesMax: bytesMax)
    }
    // The answer to HEAD has no body whose end could be waited for.
    let isSmall =
      method == .head || !hasBody || contentLength ?? .max <= RequestUpload.wholeBytesMax
    if isSmall { return (try await wholeBody(upTo: bytesMax), nil) }
    return (ByteBuffer(), RequestUpload(self, upTo: bytesMax))
  }
}

extension Response {
  /// The same answer, after which the upload is closed.
  ///
  /// An answer may come before the request's end: it is written first, because the client may wait
  /// for it; an answer that fails closes the connection, and so ends the read under way.
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
