/// A response's body, piece by piece, as it arrives.
///
/// One task iterates, once. The sender is held up while pieces wait unread; releasing the body and
/// its iterator ends the exchange.
public struct OutboundBody: AsyncSequence, Sendable {
  /// One piece; never empty.
  public typealias Element = [UInt8]

  private enum Source {
    case pieces([[UInt8]])
    case transfer(TransferLease)
  }

  private let source: Source

  /// A body that is already there, for transports of your own.
  public init(_ pieces: [[UInt8]]) {
    source = .pieces(pieces.filter { !$0.isEmpty })
  }

  init(_ lease: TransferLease) {
    source = .transfer(lease)
  }

  /// The whole rest of the body; throws `tooLarge` past `bytesMax`.
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

  /// The body as lines of text, without their ends; throws `tooLarge` past `lineBytesMax`.
  ///
  /// For JSON lines and server-sent events. A line ends with LF or CR LF.
  public func lines(lineBytesMax: Int = 1 << 20) -> OutboundLines {
    OutboundLines(body: self, lineBytesMax: lineBytesMax)
  }

  /// Starts reading.
  public func makeAsyncIterator() -> AsyncIterator {
    switch source {
    case .pieces(let pieces): AsyncIterator(pieces: pieces[...], lease: nil)
    case .transfer(let lease): AsyncIterator(pieces: [], lease: lease)
    }
  }

  /// Reads the pieces.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var pieces: ArraySlice<[UInt8]>
    fileprivate let lease: TransferLease?

    /// The next piece, or nil when the body has ended well; throws `OutboundHTTPError` otherwise.
    public mutating func next() async throws -> [UInt8]? {
      if let lease { return try await lease.chunk() }
      return pieces.popFirst()
    }
  }
}

/// A response's body as lines of text.
public struct OutboundLines: AsyncSequence, Sendable {
  /// One line without its end.
  public typealias Element = String

  let body: OutboundBody
  let lineBytesMax: Int

  /// Starts reading.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(pieces: body.makeAsyncIterator(), lineBytesMax: lineBytesMax)
  }

  /// Reads the lines.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var pieces: OutboundBody.AsyncIterator
    fileprivate let lineBytesMax: Int
    private var buffer: [UInt8] = []
    /// Bytes of `buffer` known to hold no line end.
    private var scanned = 0
    private var start = 0

    fileprivate init(pieces: OutboundBody.AsyncIterator, lineBytesMax: Int) {
      self.pieces = pieces
      self.lineBytesMax = lineBytesMax
    }

    /// The next line; a last line without an end counts, unless it is empty.
    ///
    /// Throws `OutboundHTTPError` when the body breaks off or a line is too long.
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
