import NIOCore

/// Sees a connection's bytes before the decoder does: whether a head is coming in piece by piece, and
/// how much still comes that nobody wants.
final class InputWatch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// When bytes last came.
  private(set) var lastRead = NIODeadline.now()
  /// When the first bytes came since the last request ended; nil before them.
  private(set) var firstRead: NIODeadline?
  private var discarded = 0
  private var discardsUpTo: Int?

  /// Notes that a request has ended, or that what came was its beginning.
  func requestRead() { firstRead = nil }

  /// Drops everything from now on, and closes the connection when it is more than so many bytes.
  func discard(upTo bytesMax: Int) { discardsUpTo = bytesMax }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastRead = .now()
    if firstRead == nil, !isEmptyLine(unwrapInboundIn(data)) { firstRead = lastRead }
    guard let discardsUpTo else { return context.fireChannelRead(data) }
    discarded += unwrapInboundIn(data).readableBytes
    if discarded > discardsUpTo { context.close(promise: nil) }
  }

  /// Whether bytes are at most an empty line, of which any number may stand before a request.
  private func isEmptyLine(_ bytes: ByteBuffer) -> Bool {
    bytes.readableBytes <= 2
      && bytes.readableBytesView.allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
  }
}
