import DequeModule
import NIOCore

/// What runs on a stream; called on the connection's event loop only.
protocol HTTP2Call: AnyObject {
  /// Bytes of the request.
  func received(_ bytes: ByteBuffer)
  /// The request is over.
  func receivedEnd()
  /// Whether the client may send more; else `HTTP2Stream.resumeReading` is called when it may.
  var wantsMore: Bool { get }
  /// Bytes of the request that have not been handed on.
  var heldBytes: Int { get }
  /// All that was written has been taken, or nearly.
  func hasRoom()
  /// The connection's calls hold more than it may: this one has to end.
  func refuseForSize()
  /// The stream is gone; nothing can be written any more. The last call of all.
  func closed()
}

/// One request and its response on an HTTP/2 connection.
///
/// Belongs to the connection's event loop, like everything that has a reference to it.
final class HTTP2Stream {
  /// Bytes queued for a slow client beyond which `isFull`; four frames.
  private static let queuedBytesMax = 64 * 1024

  /// How the response ends once all its bytes are out.
  enum End {
    case trailers(ByteBuffer)
    case data
  }

  let id: UInt32
  let connection: HTTP2Connection
  var call: (any HTTP2Call)?
  /// What the client may still send.
  var receiveWindow: Int
  /// What it sent and was not yet allowed to send again.
  var unreturned = 0
  var sendWindow: Int
  var queue: Deque<ByteBuffer> = []
  private(set) var queuedBytes = 0
  private(set) var end: End?
  var isEndSent = false
  var hasClientEnded = false
  var isClosed = false
  /// Whether it stands in the connection's list of those that wait to send.
  var isWaiting = false
  /// The share of `call.heldBytes` that the connection has counted.
  var countedBytes = 0

  init(id: UInt32, connection: HTTP2Connection, receiveWindow: Int, sendWindow: Int) {
    self.id = id
    self.connection = connection
    self.receiveWindow = receiveWindow
    self.sendWindow = sendWindow
  }

  /// Whether replies should wait.
  var isFull: Bool { queuedBytes >= Self.queuedBytesMax }

  /// Whether no more of the response can be given.
  var isOver: Bool { isClosed || end != nil }

  /// Writes the response's head.
  func writeHead(_ block: ByteBuffer, end: Bool = false) {
    guard !isOver else { return }
    connection.writeHeaders(self, block, end: end)
    if end { self.end = .data }
  }

  /// Writes bytes of the response, as the client's windows allow.
  func write(_ bytes: ByteBuffer) {
    guard !isOver, bytes.readableBytes > 0 else { return }
    queue.append(bytes)
    queuedBytes += bytes.readableBytes
  }

  /// Ends the response after what was written.
  func end(_ end: End) {
    guard !isOver else { return }
    self.end = end
  }

  /// Sends what was written so far.
  func flush() {
    connection.send(self)
  }

  /// Ends the stream at once; what is queued is lost.
  func reset(_ code: HTTP2ErrorCode) {
    connection.reset(self, code)
  }

  /// The call takes more again.
  func resumeReading() {
    connection.returnWindow(self)
  }

  /// Takes up to `bytesMax` bytes off the queue.
  func takeQueued(_ bytesMax: Int) -> ByteBuffer? {
    guard var first = queue.popFirst() else { return nil }
    if first.readableBytes <= bytesMax {
      queuedBytes -= first.readableBytes
      return first
    }
    let part = first.readSlice(length: bytesMax)
    queue.prepend(first)
    queuedBytes -= bytesMax
    return part
  }

  /// Forgets what is queued.
  func drop() {
    queue = []
    queuedBytes = 0
  }
}
