import DequeModule
import HTTPSupport
import NIOCore
import StatusCodes

/// The handler of a stream's request, called on the connection's event loop only.
protocol HTTP2Call: AnyObject {
  /// Receives bytes of the request.
  func received(_ bytes: ByteBuffer)
  /// Receives the end of the request.
  func receivedEnd()
  /// True if the client may send more; if false, `HTTP2Stream.resumeReading` is called later.
  var wantsMore: Bool { get }
  /// The number of request bytes that have not been passed on yet.
  var heldBytes: Int { get }
  /// Called when the client has taken all or nearly all written bytes.
  func hasRoom()
  /// Ends the call because calls hold more memory than allowed.
  func refuseForSize(_ error: StatusError)
  /// Called when the stream is closed and nothing more can be written; always the last call.
  func closed()
}

/// One request and its response on an HTTP/2 connection.
///
/// A stream belongs to the connection's event loop, as do all objects with a reference to it.
final class HTTP2Stream {
  /// The number of queued bytes at which `isFull` becomes true: four frames.
  private static let queuedBytesMax = 64 * 1024

  /// The size up to which a request or reply is not counted in the common memory budget.
  ///
  /// It is small compared with the memory of the stream itself.
  static let uncountedBytesMax = 16 * 1024

  /// The way in which the response ends once all its bytes have been sent.
  enum End {
    case trailers(ByteBuffer)
    case data
  }

  let id: UInt32
  let connection: HTTP2Connection
  var call: (any HTTP2Call)?
  /// The number of bytes that the client may still send.
  var receiveWindow: Int
  /// The number of received bytes that were not returned to the client's window yet.
  var unreturned = 0
  var sendWindow: Int
  var queue: Deque<ByteBuffer> = []
  private(set) var queuedBytes = 0
  private(set) var end: End?
  var isEndSent = false
  var hasClientEnded = false
  var isClosed = false
  /// True if the stream is in the connection's list of streams that wait to send.
  var isWaiting = false
  /// The part of `call.heldBytes` that the connection has counted.
  var countedBytes = 0
  /// The hold for a long request in the common memory budget.
  var requestHold: TransferHold?
  /// The hold for a reply's unsent bytes in the common memory budget.
  var replyHold: TransferHold?

  init(id: UInt32, connection: HTTP2Connection, receiveWindow: Int, sendWindow: Int) {
    self.id = id
    self.connection = connection
    self.receiveWindow = receiveWindow
    self.sendWindow = sendWindow
  }

  /// True if further replies should wait.
  var isFull: Bool { queuedBytes >= Self.queuedBytesMax }

  /// True if the response accepts no more bytes.
  var isOver: Bool { isClosed || end != nil }

  func writeHead(_ block: ByteBuffer, end: Bool = false) {
    guard !isOver else { return }
    connection.writeHeaders(self, block, end: end)
    if end { self.end = .data }
  }

  /// Queues bytes of the response, which are sent as the client's windows allow.
  func write(_ bytes: ByteBuffer) {
    guard !isOver, bytes.readableBytes > 0 else { return }
    queue.append(bytes)
    queuedBytes += bytes.readableBytes
  }

  /// Ends the response after the queued bytes.
  func end(_ end: End) {
    guard !isOver else { return }
    self.end = end
  }

  /// Sends the queued bytes as far as possible.
  func flush() {
    connection.send(self)
  }

  /// Resets the stream immediately and drops the queued bytes.
  func reset(_ code: HTTP2ErrorCode) {
    connection.reset(self, code)
  }

  /// Lets the client send again after the call has made room.
  func resumeReading() {
    connection.returnWindow(self)
  }

  /// Removes up to `bytesMax` bytes from the queue.
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

  func drop() {
    queue = []
    queuedBytes = 0
  }
}
