import NIOCore
import NIOHPACK
import NIOPosix

/// A minimal client of one unary gRPC method, with one call at a time.
///
/// It writes its own frames. A stream channel for each call would cost the generator more than the
/// call costs the server, and both share the cores. From the second call on, headers are indexes
/// into HPACK's table, as in common clients. `@unchecked Sendable`: all properties are accessed
/// only on the connection's event loop.
final class GRPCConnection: ChannelInboundHandler, LoadConnection, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private struct Call {
    var stream: UInt32
    var window: Int
    var reply = ByteBuffer()
    var report: (Result<ByteBuffer, any Error>) -> Void
  }

  /// A flow-control window that no measured reply fills.
  private static let windowBytes = 1 << 30
  /// The frame size that every server accepts.
  private static let frameBytesMax = 16_384

  private let headers: [(name: String, value: String)]
  private var context: ChannelHandlerContext?
  private var input = ByteBuffer()
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  private var headerBlock = ByteBuffer()
  private var headersEndStream = false
  private var call: Call?
  /// The part of a message that waits for the server's flow-control window.
  private var unsent: ByteBuffer?
  private var nextStream: UInt32 = 1
  private var connectionWindow = 65_535
  private var streamWindow = 65_535
  private var receivedBytes = 0

  private init(method: String, authority: String, token: String) {
    headers = [
      (":method", "POST"), (":scheme", "http"), (":path", "/" + method),
      (":authority", authority), ("te", "trailers"), ("content-type", "application/grpc"),
      ("user-agent", "hearth-benchmarks"), ("authorization", "Bearer \(token)"),
    ]
  }

  /// Connects for calls of a method, such as `google.firestore.v1.Firestore/GetDocument`.
  static func connect(
    to address: Address,
    method: String,
    token: String,
    on loop: any EventLoop
  ) -> EventLoopFuture<any LoadConnection> {
    ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: address.host, port: address.port)
      .flatMapThrowing { channel in
        let connection = GRPCConnection(method: method, authority: "\(address)", token: token)
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
      }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    var bytes = ByteBuffer()
    bytes.writePreface(windowBytes: Self.windowBytes)
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  // MARK: Calls

  func send(_ body: ByteBuffer, then report: @escaping (Result<ByteBuffer, any Error>) -> Void) {
    guard let context else { return report(.failure(BenchmarkError("The connection is closed."))) }
    let stream = nextStream
    nextStream += 2
    call = Call(stream: stream, window: streamWindow, report: report)
    var message = ByteBuffer()
    message.writeInteger(0 as UInt8)
    message.writeInteger(UInt32(body.readableBytes))
    message.writeImmutableBuffer(body)
    var bytes = ByteBuffer()
    let block = stream == 1 ? firstBlock() : laterBlock()
    bytes.writeFrame(.headers, flags: .endHeaders, stream: stream, length: block.readableBytes)
    bytes.writeImmutableBuffer(block)
    context.write(wrapOutboundOut(bytes), promise: nil)
    unsent = message
    sendMessage(context)
    context.flush()
  }

  /// Sends as much of the message as flow control and the frame size allow.
  private func sendMessage(_ context: ChannelHandlerContext) {
    while let call, let rest = unsent?.readableBytes {
      let length = min(rest, Self.frameBytesMax, connectionWindow, call.window)
      guard length > 0, let part = unsent?.readSlice(length: length) else { return }
      connectionWindow -= length
      self.call?.window -= length
      if length == rest { unsent = nil }
      var bytes = ByteBuffer()
      bytes.writeFrame(
        .data,
        flags: length == rest ? .end : [],
        stream: call.stream,
        length: length
      )
      bytes.writeImmutableBuffer(part)
      context.write(wrapOutboundOut(bytes), promise: nil)
    }
  }

  /// All headers in full, each to be added to HPACK's table.
  private func firstBlock() -> ByteBuffer {
    var block = ByteBuffer()
    block.writeHeaders(headers)
    return block
  }

  /// All headers as indexes into HPACK's table.
  ///
  /// The static table has 61 entries, and the newest dynamic entry comes first.
  private func laterBlock() -> ByteBuffer {
    ByteBuffer(bytes: headers.indices.map { UInt8(0x80 | (61 + headers.count - $0)) })
  }

  private func finish(_ result: Result<ByteBuffer, any Error>) {
    guard let call else { return }
    self.call = nil
    unsent = nil
    call.report(result)
  }

  func close() {
    context?.close(promise: nil)
  }

  // MARK: Frames

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    input.writeImmutableBuffer(unwrapInboundIn(data))
    do {
      while let frame = input.readFrame() { try receive(frame, context) }
      input.discardReadBytes()
    } catch {
      finish(.failure(error))
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish(.failure(BenchmarkError("The server closed the connection during a call.")))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    finish(.failure(error))
    context.close(promise: nil)
  }

  private func receive(_ received: Frame, _ context: ChannelHandlerContext) throws {
    var frame = received
    switch frame.kind {
    case .data:
      try receiveData(frame, context)
    case .headers:
      headersEndStream = frame.flags.contains(.end)
      try frame.removePadding()
      if frame.flags.contains(.priority) { frame.payload.moveReaderIndex(forwardBy: 5) }
      headerBlock = frame.payload
      try receiveBlock(frame)
    case .continuation:
      headerBlock.writeImmutableBuffer(frame.payload)
      try receiveBlock(frame)
    case .reset:
      guard frame.stream == call?.stream else { return }
      finish(.failure(BenchmarkError("The server reset a call.")))
    case .settings:
      guard !frame.flags.contains(.acknowledgement) else { return }
      while let setting = frame.payload.readMultipleIntegers(as: (UInt16, UInt32).self) {
        guard setting.0 == 4 else { continue }
        // The new setting also applies to the call in progress.
        call?.window += Int(setting.1) - streamWindow
        streamWindow = Int(setting.1)
      }
      sendMessage(context)
      var bytes = ByteBuffer()
      bytes.writeFrame(.settings, flags: .acknowledgement, length: 0)
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .ping:
      guard !frame.flags.contains(.acknowledgement) else { return }
      var bytes = ByteBuffer()
      bytes.writeFrame(.ping, flags: .acknowledgement, length: frame.payload.readableBytes)
      bytes.writeImmutableBuffer(frame.payload)
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .goAway:
      throw BenchmarkError(
        "The server ended the connection: \(frame.payload.hexDump(format: .plain))"
      )
    case .windowUpdate:
      let bytes = Int(frame.payload.readInteger(as: UInt32.self) ?? 0)
      if frame.stream == 0 {
        connectionWindow += bytes
      } else if frame.stream == call?.stream {
        call?.window += bytes
      }
      sendMessage(context)
      context.flush()
    default:
      return
    }
  }

  private func receiveData(_ received: Frame, _ context: ChannelHandlerContext) throws {
    var frame = received
    receivedBytes += frame.payload.readableBytes
    if receivedBytes > Self.windowBytes / 2 {
      var bytes = ByteBuffer()
      bytes.writeWindowUpdate(receivedBytes)
      receivedBytes = 0
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    }
    guard frame.stream == call?.stream else { return }
    try frame.removePadding()
    call?.reply.writeImmutableBuffer(frame.payload)
    if frame.flags.contains(.end) {
      throw BenchmarkError("The server ended a call without trailers.")
    }
  }

  private func receiveBlock(_ frame: Frame) throws {
    guard frame.flags.contains(.endHeaders) else { return }
    // Every block must be decoded, because each one changes the table.
    let headers = try decoder.decodeHeaders(from: &headerBlock)
    guard frame.stream == call?.stream else { return }
    if let status = headers.first(name: ":status"), status != "200" {
      return finish(.failure(BenchmarkError("A call was answered with HTTP status \(status).")))
    }
    guard headersEndStream, var reply = call?.reply else { return }
    let status = headers.first(name: "grpc-status") ?? "missing"
    guard status == "0" else {
      let message = headers.first(name: "grpc-message") ?? ""
      return finish(.failure(BenchmarkError("A call ended with gRPC status \(status): \(message)")))
    }
    reply.moveReaderIndex(forwardBy: min(5, reply.readableBytes))
    finish(.success(reply))
  }
}
