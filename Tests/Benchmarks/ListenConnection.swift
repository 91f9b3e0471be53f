import FirestoreProtos
import NIOCore
import NIOHPACK
import NIOPosix
import SwiftProtobuf

/// A minimal client with several Listen streams on one connection, one target each.
///
/// `@unchecked Sendable`: all properties are accessed only on the connection's event loop.
final class ListenConnection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer
  typealias Reply = Google_Firestore_V1_ListenResponse

  private static let windowBytes = 1 << 30

  private let headers: [(name: String, value: String)]
  private let requests: [ByteBuffer]
  /// Receives each reply with the index of its stream, starting at 0.
  private let report: (Int, Result<Reply, any Error>) -> Void
  private var context: ChannelHandlerContext?
  private var input = ByteBuffer()
  private var messages: [UInt32: ByteBuffer] = [:]
  private var receivedBytes = 0

  private init(
    authority: String,
    database: String,
    token: String,
    requests: [ByteBuffer],
    report: @escaping (Int, Result<Reply, any Error>) -> Void
  ) {
    headers = [
      (":method", "POST"), (":scheme", "http"),
      (":path", "/google.firestore.v1.Firestore/Listen"), (":authority", authority),
      ("te", "trailers"), ("content-type", "application/grpc"),
      ("user-agent", "hearth-benchmarks"), ("authorization", "Bearer \(token)"),
      ("google-cloud-resource-prefix", database),
    ]
    self.requests = requests
    self.report = report
  }

  /// Connects and opens one stream for each request.
  static func connect(
    to address: Address,
    database: String,
    token: String,
    on loop: any EventLoop,
    requests: [ByteBuffer],
    report: @escaping @Sendable (Int, Result<Reply, any Error>) -> Void
  ) -> EventLoopFuture<ListenConnection> {
    ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: address.host, port: address.port)
      .flatMapThrowing { channel in
        let connection = ListenConnection(
          authority: "\(address)",
          database: database,
          token: token,
          requests: requests,
          report: report
        )
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
      }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    var bytes = ByteBuffer()
    bytes.writePreface(windowBytes: Self.windowBytes)
    for (number, request) in requests.enumerated() {
      let stream = UInt32(number * 2 + 1)
      var block = ByteBuffer()
      block.writeHeaders(headers)
      bytes.writeFrame(.headers, flags: .endHeaders, stream: stream, length: block.readableBytes)
      bytes.writeImmutableBuffer(block)
      bytes.writeFrame(.data, stream: stream, length: request.readableBytes + 5)
      bytes.writeInteger(0 as UInt8)
      bytes.writeInteger(UInt32(request.readableBytes))
      bytes.writeImmutableBuffer(request)
    }
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func close() {
    context?.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    input.writeImmutableBuffer(unwrapInboundIn(data))
    do {
      while let frame = input.readFrame() { try receive(frame, context) }
      input.discardReadBytes()
    } catch {
      report(0, .failure(error))
      context.close(promise: nil)
    }
  }

  private func receive(_ received: Frame, _ context: ChannelHandlerContext) throws {
    var frame = received
    switch frame.kind {
    case .data:
      receivedBytes += frame.payload.readableBytes
      if receivedBytes > Self.windowBytes / 2 {
        var bytes = ByteBuffer()
        bytes.writeWindowUpdate(receivedBytes)
        receivedBytes = 0
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
      }
      try frame.removePadding()
      messages[frame.stream, default: ByteBuffer()].writeImmutableBuffer(frame.payload)
      try readMessages(of: frame.stream)
    case .headers where frame.flags.contains(.end), .reset:
      report(Int(frame.stream / 2), .failure(BenchmarkError("The server ended a listener.")))
    case .settings where !frame.flags.contains(.acknowledgement):
      var bytes = ByteBuffer()
      bytes.writeFrame(.settings, flags: .acknowledgement, length: 0)
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .ping where !frame.flags.contains(.acknowledgement):
      var bytes = ByteBuffer()
      bytes.writeFrame(.ping, flags: .acknowledgement, length: frame.payload.readableBytes)
      bytes.writeImmutableBuffer(frame.payload)
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    case .goAway: throw BenchmarkError("The server ended a connection of listeners.")
    default: return
    }
  }

  private func readMessages(of stream: UInt32) throws {
    while let buffer = messages[stream],
      let length = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt32.self),
      buffer.readableBytes >= 5 + Int(length)
    {
      let bytes = buffer.getBytes(at: buffer.readerIndex + 5, length: Int(length)) ?? []
      messages[stream]?.moveReaderIndex(forwardBy: 5 + Int(length))
      report(Int(stream / 2), .success(try Reply(serializedBytes: bytes)))
    }
    if messages[stream]?.readableBytes == 0 { messages[stream] = nil }
  }
}
