import HTTPSupport
import Logging
import NIOCore
import NIOEmbedded
import NIOHPACK
import StatusCodes

@testable import HTTP2Server

/// A client of one `HTTP2Connection` without socket, thread or clock; it controls every byte.
struct Peer {
  let channel: EmbeddedChannel
  let connection: HTTP2Connection
  private let opened = Opened()

  /// The calls that the connection has started.
  private final class Opened {
    var calls: [PeerCall] = []
  }

  struct Frame: Equatable {
    var type: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: ByteBuffer
  }

  /// Creates a connection that has sent its settings, and a client that has sent only its preface.
  init(
    _ configuration: GRPCServer.Configuration = GRPCServer.Configuration(),
    budget: TransferBudget? = nil
  ) throws {
    let opened = opened
    connection = HTTP2Connection(
      configuration: configuration,
      budget: budget,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { stream, _ in
      let call = PeerCall(stream)
      opened.calls.append(call)
      return call
    }
    channel = EmbeddedChannel()
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
    try channel.pipeline.syncOperations.addHandler(connection)
    try channel.writeInbound(ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
  }

  /// Creates a connection on which both sides have acknowledged the settings.
  static func connected(
    _ configuration: GRPCServer.Configuration = GRPCServer.Configuration(),
    settings: [HTTP2Setting] = [],
    budget: TransferBudget? = nil
  ) throws -> Peer {
    let peer = try Peer(configuration, budget: budget)
    try peer.send { $0.writeSettings(settings) }
    _ = try peer.take()
    return peer
  }

  var loop: EmbeddedEventLoop { channel.embeddedEventLoop }
  var calls: [PeerCall] { opened.calls }

  /// Releases the calls, so that only the connection retains those that are open.
  func forgetCalls() {
    opened.calls = []
  }

  /// Sends the bytes that `write` produces, all at once.
  func send(_ write: (inout ByteBuffer) -> Void) throws {
    var bytes = ByteBuffer()
    write(&bytes)
    try channel.writeInbound(bytes)
    loop.run()
  }

  /// Sends the head of a call.
  func open(_ stream: UInt32, end: Bool = false) throws {
    // `:method: POST`, `:scheme: http` and `:path: /` in the static table.
    let head = ByteBuffer(bytes: [0x83, 0x86, 0x84])
    try send { $0.writeHeaders(stream: stream, block: head, end: end) }
  }

  /// Returns all frames that the connection has sent since the last call.
  func take() throws -> [Frame] {
    loop.run()
    var bytes = ByteBuffer()
    while var part = try channel.readOutbound(as: ByteBuffer.self) { bytes.writeBuffer(&part) }
    var frames: [Frame] = []
    while let frame = bytes.readFrame() { frames.append(frame) }
    return frames
  }
}

extension ByteBuffer {
  /// Returns the next complete frame.
  mutating func readFrame() -> Peer.Frame? {
    guard let word = getInteger(at: readerIndex, as: UInt32.self),
      readableBytes >= HTTP2Size.frameHeader + Int(word >> 8),
      let (_, flags, stream) = readMultipleIntegers(as: (UInt32, UInt8, UInt32).self),
      let payload = readSlice(length: Int(word >> 8))
    else { return nil }
    return Peer.Frame(
      type: UInt8(truncatingIfNeeded: word),
      flags: flags,
      stream: stream,
      payload: payload.slice()
    )
  }
}

/// A call that only records what happens to it.
final class PeerCall: HTTP2Call {
  let stream: HTTP2Stream
  var wantsMore = true
  var holds = false
  private(set) var received = 0
  private(set) var hasEnded = false
  private(set) var rooms = 0
  private(set) var refusals = 0
  private(set) var isClosed = false

  init(_ stream: HTTP2Stream) {
    self.stream = stream
  }

  var heldBytes: Int { holds ? received : 0 }

  func received(_ bytes: ByteBuffer) {
    received += bytes.readableBytes
  }

  func receivedEnd() {
    hasEnded = true
  }

  func hasRoom() {
    rooms += 1
  }

  func refuseForSize(_ error: StatusError) {
    refusals += 1
  }

  func closed() {
    isClosed = true
  }
}
