import HummingbirdCore
import NIOCore
import NIOHTTPTypes

/// Tells the roster when a request of an HTTP/1.1 connection is under way.
///
/// It is so from the end of the request's head to the end of its response.
final class RequestWatch: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let roster: ConnectionRoster
  private var underWay = 0

  init(_ roster: ConnectionRoster) {
    self.roster = roster
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head = unwrapInboundIn(data) {
      underWay += 1
      if underWay == 1 { roster.note(context.channel, isBusy: true) }
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // A malformed request is answered although its head never came.
    if case .end = unwrapOutboundIn(data), underWay > 0 {
      underWay -= 1
      if underWay == 0 { roster.note(context.channel, isBusy: false) }
    }
    context.write(data, promise: promise)
  }
}

/// Lets a listening socket accept what the roster has room for.
struct RosterConnections: AvailableConnectionsDelegate {
  let roster: ConnectionRoster

  func connectionOpened() { roster.accepted() }
  func connectionClosed() {}
  func isAcceptingNewConnections() -> Bool { roster.hasRoom() }
}
