import DequeModule
import HTTPSupport
import NIOCore
import RuntimeSupport

/// What runs on a stream; its methods are called on the connection's event loop only.
protocol HTTP2Call: AnyObject {
  /// Takes bytes of the request.
  func received(_ bytes: ByteBuffer)
  /// Notes the end of the request.
  func receivedEnd()
  /// Whether the client may send more; if not, `HTTP2Stream.resumeReading` is called later.
  var wantsMore: Bool { get }
  /// The bytes of the request that have not been handed on.
  var heldBytes: Int { get }
  /// Notes that all or nearly all written bytes have been taken.
  func hasRoom()
  /// Ends this call, because calls hold more memory than allowed.
  func refuseForSize(_ error: StatusError)
  /// Notes that the stream is gone; nothing more can be written. It is always the last call.
  func closed()
}

/// One request and its response on an HTTP/2 connection.
///
/// Belongs to the connection's event loop, like everything that has a reference to it.
final class HTTP2Stream {
  /// The bytes queued for a slow client from which `isFull` is true; four frames.
  private static let queuedBytesMax = 64 * 1024

  /// A request or reply up to this size is not counted against the memory of all connections; it is
  /// little beside what the stream itself takes.
  static let uncountedBytesMax = 16 * 1024

  /// How the response ends once all its bytes are out.
  enum End {
    case trailers(ByteBuffer)
    case data
  }

  let id: UInt32
  let connection: HTTP2Connection
  var call: (any HTTP2Call)?
  /// The bytes that the client may still send.
  var receiveWindow: Int
  /// The received bytes for which the client has not been given new window yet.
  var unreturned = 0
  var sendWindow: Int
  var queue: Deque<ByteBuffer> = []
  private(set) var queuedBytes = 0
  private(set) var end: End?
  var isEndSent = false
  var hasClientEnded = false
  var isClosed = false
  /// Whether the stream is in the connection's list of streams that wait to send.
  var isWaiting = false
  /// The share of `call.heldBytes` that the connection has counted.
  var countedBytes = 0
  /// Counts a long request against the memory of all connections.
  var requestHold: TransferHold?
  /// Counts the queued bytes in the same way.
  var replyHold: TransferHold?

  init(id: UInt32, connection: HTTP2Connection, receiveWindow: Int, sendWindow: Int) {
    self.id = id
    self.connection = connection
    self.receiveWindow = receiveWindow
    self.sendWindow = sendWindow
  }

  /// Whether replies should wait.
  var isFull: Bool { queuedBytes >= Self.queuedBytesMax }

  /// Whether nothing more of the response can be given.
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

  /// Ends the stream at once and drops the queued bytes.
  func reset(_ code: HTTP2ErrorCode) {
    connection.reset(self, code)
  }

  /// Lets the client send again, because the call takes more.
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

  /// Drops the queued bytes.
  func drop() {
    queue = []
    queuedBytes = 0
  }
}
