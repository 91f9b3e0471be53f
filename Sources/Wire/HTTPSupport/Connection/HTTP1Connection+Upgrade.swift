import HTTPTypes
import NIOCore
import NIOHTTP1

/// The change from HTTP to the protocol of the service's upgrader.
extension HTTP1Connection {
  /// Returns the upgrader if the client asks for its protocol, and nothing else is left to do.
  func upgrader(for head: RequestHead) -> HTTPService.Upgrader? {
    guard let upgrader = service.upgrader, let upgrade = head.upgrade, head.body == .none,
      head.request.method == .get, upgrade.lowercased() == upgrader.supportedProtocol
    else { return nil }
    return upgrader
  }

  /// Asks the upgrader; if it refuses, the responder gets the request.
  func upgrade(
    _ request: Request,
    _ upgrader: HTTPService.Upgrader,
    _ context: ChannelHandlerContext
  ) {
    var headers = HTTPHeaders(request.headers.map { ($0.name.rawName, $0.value) })
    if let host = request.head.authority { headers.add(name: "Host", value: host) }
    let head = HTTPRequestHead(
      version: .http1_1,
      method: .GET,
      uri: request.head.path ?? "/",
      headers: headers
    )
    let number = exchanges
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    upgrader.buildUpgradeResponse(
      channel: context.channel,
      upgradeRequest: head,
      initialResponseHeaders: [:]
    ).hop(to: context.eventLoop).whenComplete { answer in
      let connection = bound.value
      guard let context = connection.context, let exchange = connection.exchange,
        exchange.number == number
      else { return }
      switch answer {
      case .success(let fields) where !connection.isQuiescing:
        connection.handOver(to: upgrader, head, fields, context)
      default: connection.respond(to: request, exchange, context)
      }
    }
  }

  /// Writes the response that switches protocols, and leaves the connection to the upgrader.
  private func handOver(
    to upgrader: HTTPService.Upgrader,
    _ head: HTTPRequestHead,
    _ fields: HTTPHeaders,
    _ context: ChannelHandlerContext
  ) {
    var bytes = ByteBuffer(string: "HTTP/1.1 101 Switching Protocols\r\n")
    for (name, value) in fields { bytes.writeString("\(name): \(value)\r\n") }
    bytes.writeStaticString("\r\n")
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    exchange = nil
    noteBusy(context)
    // The roster cannot know when the client is idle.
    service.roster.noteMultiplexed(context.channel)
    let channel = context.channel
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    upgrader.upgrade(context: context, upgradeRequest: head).whenComplete { outcome in
      let connection = bound.value
      guard case .success = outcome else { return channel.close(promise: nil) }
      // This handler goes first, because the decoder passes its unread bytes to the next one.
      let pipeline = channel.pipeline.syncOperations
      pipeline.removeHandler(connection, promise: nil)
      pipeline.removeHandler(connection.watch, promise: nil)
      pipeline.removeHandler(connection.decoder).whenComplete { _ in channel.read() }
    }
  }
}
