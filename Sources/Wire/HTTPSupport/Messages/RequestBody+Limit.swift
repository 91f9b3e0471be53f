package import HTTPMessages
import HTTPTypes
package import NIOCore
package import StatusCodes
import Synchronization

/// An error for a request body that is longer than the endpoint accepts.
///
/// By default the client receives `INVALID_ARGUMENT` and 400, which clients do not retry. An
/// endpoint with another response (callables: 413) catches the error.
package struct BodyTooLargeError: StatusConvertible, CustomStringConvertible, Equatable {
  package var bytesMax: Int

  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  package var statusCode: StatusCode { .invalidArgument }
  package var statusMessage: String {
    "Request payload size exceeds the limit: \(bytesMax) bytes."
  }
  package var description: String { statusMessage }
}

/// An error for a request body that is malformed partway, such as by a chunk without a size.
package struct MalformedBodyError: StatusConvertible, CustomStringConvertible {
  package var reason: String

  package var statusCode: StatusCode { .invalidArgument }
  package var statusMessage: String { "The request's body is malformed: \(reason)." }
  package var description: String { statusMessage }
}

/// An error for a request body that arrived more slowly than the server accepts.
package struct BodyTooSlowError: StatusConvertible, CustomStringConvertible {
  package init() {}

  package var statusCode: StatusCode { .deadlineExceeded }
  package var statusMessage: String { "The request's body took too long to come." }
  package var description: String { statusMessage }
}

extension Request {
  /// Collects the whole body; if the announced length is too large, throws `BodyTooLargeError`
  /// unread.
  ///
  /// Throws `MalformedBodyError` if the body violates HTTP's rules, `BodyTooSlowError` if it
  /// stalls, `TransferBudgetError` if the memory for all bodies is full, and `CancellationError` if
  /// the client leaves before its end. The bytes count as held until the request's responder
  /// returns.
  package func wholeBody(upTo bytesMax: Int) async throws -> ByteBuffer {
    try checkAnnounced(bytesMax)
    switch body {
    case .whole(let buffer):
      guard buffer.readableBytes <= bytesMax else { throw BodyTooLargeError(bytesMax: bytesMax) }
      return buffer
    case .stream(let pieces):
      var collected = ByteBuffer()
      for try await piece in pieces {
        guard collected.readableBytes + piece.readableBytes <= bytesMax else {
          throw BodyTooLargeError(bytesMax: bytesMax)
        }
        try hold?.take(piece)
        collected.writeImmutableBuffer(piece)
      }
      return collected
    }
  }

  /// Returns the body with a limit on its size, for a caller that reads it as it arrives.
  ///
  /// Throws `BodyTooLargeError` immediately if the announced length is too large. Otherwise a read
  /// past the limit throws it.
  package func boundedBody(upTo bytesMax: Int) throws -> BoundedBody {
    try checkAnnounced(bytesMax)
    if case .whole(let buffer) = body, buffer.readableBytes > bytesMax {
      throw BodyTooLargeError(bytesMax: bytesMax)
    }
    return BoundedBody(body, upTo: bytesMax, hold)
  }

  private func checkAnnounced(_ bytesMax: Int) throws {
    if let announced = contentLength, announced > bytesMax {
      throw BodyTooLargeError(bytesMax: bytesMax)
    }
  }
}

/// A body that is read up to a limit and records a failed read.
package final class BoundedBody: Sendable {
  private struct State {
    var bytes = 0
    var failure: (any Error)?
  }

  private let source: RequestBody
  private let bytesMax: Int
  private let hold: TransferHold?
  private let state = Mutex(State())

  fileprivate init(_ source: RequestBody, upTo bytesMax: Int, _ hold: TransferHold?) {
    self.source = source
    self.bytesMax = bytesMax
    self.hold = hold
  }

  /// The error that reading the body has thrown; nil if there was none.
  package var failure: (any Error)? { state.withLock { $0.failure } }

  /// The body, to be read once.
  package var body: RequestBody {
    guard case .stream(let pieces) = source else { return source }
    return .stream(AsyncThrowingStream { try await self.next(of: pieces) })
  }

  /// Returns the body once it is complete or `bytesMin` bytes have arrived.
  ///
  /// Like `body`, the result is to be read once. Throws the errors of reading the body.
  package func readAhead(_ bytesMin: Int) async throws -> RequestBody {
    guard case .stream(let pieces) = source else { return source }
    var collected = ByteBuffer()
    while collected.readableBytes < bytesMin {
      guard let piece = try await next(of: pieces) else { return .whole(collected) }
      try hold?.take(piece)
      collected.writeImmutableBuffer(piece)
    }
    let first = FirstPiece(collected)
    return .stream(
      AsyncThrowingStream { [self] in
        guard let piece = first.take() else { return try await next(of: pieces) }
        hold?.remove(piece.readableBytes)
        return piece
      }
    )
  }

  /// The piece of a body that was read ahead.
  private final class FirstPiece: Sendable {
    private let piece: Mutex<ByteBuffer?>

    init(_ piece: ByteBuffer) { self.piece = Mutex(piece) }

    func take() -> ByteBuffer? {
      piece.withLock { piece in
        defer { piece = nil }
        return piece
      }
    }
  }

  private func next(
    of pieces: AsyncThrowingStream<ByteBuffer, any Error>
  ) async throws -> ByteBuffer? {
    do {
      guard let piece = try await pieces.nextElement() else { return nil }
      let bytes = state.withLock { state in
        state.bytes += piece.readableBytes
        return state.bytes
      }
      guard bytes <= bytesMax else { throw BodyTooLargeError(bytesMax: bytesMax) }
      return piece
    } catch {
      state.withLock { $0.failure = error }
      throw error
    }
  }
}

extension TransferHold {
  /// Counts a piece of a body that is being collected.
  fileprivate func take(_ piece: ByteBuffer) throws {
    moved(piece.readableBytes)
    guard add(piece.readableBytes) else {
      if isEnded { throw BodyTooSlowError() }
      throw budget.error
    }
  }
}

extension AsyncThrowingStream where Element: Sendable, Failure == any Error {
  /// Returns the next element; every iterator of such a stream reads from the same source.
  package func nextElement() async throws -> Element? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}
