import NIOCore

/// A handler that sees a connection's bytes before the decoder does.
///
/// It records when the first bytes of a request arrive, and discards input that is no longer
/// wanted.
final class InputWatch: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The time at which bytes last arrived.
  private(set) var lastRead = NIODeadline.now()
  /// The arrival time of the first bytes since the last request ended; nil before them.
  private(set) var firstRead: NIODeadline?
  private var discarded = 0
  private var discardsUpTo: Int?

  /// Resets `firstRead` after a request has been read.
  func requestRead() { firstRead = nil }

  /// Discards all further input and closes the connection once it exceeds `bytesMax`.
  func discard(upTo bytesMax: Int) { discardsUpTo = bytesMax }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastRead = .now()
    if firstRead == nil, !isEmptyLine(unwrapInboundIn(data)) { firstRead = lastRead }
    guard let discardsUpTo else { return context.fireChannelRead(data) }
    discarded += unwrapInboundIn(data).readableBytes
    if discarded > discardsUpTo { context.close(promise: nil) }
  }

  /// Returns true for at most one empty line; any number of them may precede a request.
  private func isEmptyLine(_ bytes: ByteBuffer) -> Bool {
    bytes.readableBytes <= 2
      && bytes.readableBytesView.allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
  }
}
