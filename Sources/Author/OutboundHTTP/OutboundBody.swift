/// The body of a response, as a sequence of the chunks that arrive.
///
/// Only one task may iterate over it, and only once. The sender has to wait while chunks are
/// unread. The request ends when the body and its iterator are released.
public struct OutboundBody: AsyncSequence, Sendable {
  /// A chunk of bytes; never empty.
  public typealias Element = [UInt8]

  private enum Source {
    case pieces([[UInt8]])
    case transfer(TransferLease)
  }

  private let source: Source

  /// Creates a body that has already arrived, for custom transports.
  public init(_ pieces: [[UInt8]]) {
    source = .pieces(pieces.filter { !$0.isEmpty })
  }

  init(_ lease: TransferLease) {
    source = .transfer(lease)
  }

  /// Returns the rest of the body; throws `tooLarge` if it exceeds `bytesMax`.
  public func collect(upTo bytesMax: Int) async throws -> [UInt8] {
    var all: [UInt8] = []
    for try await piece in self {
      guard piece.count <= bytesMax - all.count else {
        throw OutboundHTTPError(.tooLarge, "the response has more than \(bytesMax) bytes")
      }
      all += piece
    }
    return all
  }

  /// Returns the body as lines of text, without line ends.
  ///
  /// Use it for JSON lines or server-sent events. A line ends with LF or CR LF. Iteration throws
  /// `tooLarge` if a line exceeds `lineBytesMax`.
  public func lines(lineBytesMax: Int = 1 << 20) -> OutboundLines {
    OutboundLines(body: self, lineBytesMax: lineBytesMax)
  }

  /// Starts to read the body.
  public func makeAsyncIterator() -> AsyncIterator {
    switch source {
    case .pieces(let pieces): AsyncIterator(pieces: pieces[...], lease: nil)
    case .transfer(let lease): AsyncIterator(pieces: [], lease: lease)
    }
  }

  /// The iterator over the chunks of a body.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var pieces: ArraySlice<[UInt8]>
    fileprivate let lease: TransferLease?

    /// Returns the next chunk; nil at the end.
    ///
    /// Throws `OutboundHTTPError` for an incomplete body.
    public mutating func next() async throws -> [UInt8]? {
      if let lease { return try await lease.chunk() }
      return pieces.popFirst()
    }
  }
}

/// The body of a response as a sequence of text lines.
public struct OutboundLines: AsyncSequence, Sendable {
  /// A line without its line end.
  public typealias Element = String

  let body: OutboundBody
  let lineBytesMax: Int

  /// Starts to read the body.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(pieces: body.makeAsyncIterator(), lineBytesMax: lineBytesMax)
  }

  /// The iterator over the lines of a body.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var pieces: OutboundBody.AsyncIterator
    fileprivate let lineBytesMax: Int
    private var buffer: [UInt8] = []
    /// The number of bytes of `buffer` that are known to contain no line end.
    private var scanned = 0
    private var start = 0

    fileprivate init(pieces: OutboundBody.AsyncIterator, lineBytesMax: Int) {
      self.pieces = pieces
      self.lineBytesMax = lineBytesMax
    }

    /// Returns the next line, including a last line without a line end; nil at the end of the body.
    ///
    /// Throws `OutboundHTTPError` if the body is incomplete or a line is too long.
    public mutating func next() async throws -> String? {
      while true {
        if let end = buffer[scanned...].firstIndex(of: UInt8(ascii: "\n")) {
          defer {
            start = end + 1
            scanned = start
          }
          let hasReturn = end > start && buffer[end - 1] == UInt8(ascii: "\r")
          return String(decoding: buffer[start..<(hasReturn ? end - 1 : end)], as: UTF8.self)
        }
        buffer.removeFirst(start)
        start = 0
        scanned = buffer.count
        guard buffer.count <= lineBytesMax else {
          throw OutboundHTTPError(.tooLarge, "a line has more than \(lineBytesMax) bytes")
        }
        guard let piece = try await pieces.next() else {
          defer {
            buffer = []
            scanned = 0
          }
          return buffer.isEmpty ? nil : String(decoding: buffer, as: UTF8.self)
        }
        buffer += piece
      }
    }
  }
}
