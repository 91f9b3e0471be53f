import HummingbirdCore
import Logging
import NIOCore

/// An accepted connection whose protocol may not be known yet.
struct PortConnection: ServerChildChannelValue {
  let channel: any Channel
  let client: ClientWatch
  let conversation: EventLoopFuture<Conversation>

  /// The protocol that a connection turned out to speak.
  enum Conversation: Sendable {
    case http1(HTTP1Channel.Value)
    case http2
  }
}

/// Accepts connections of both protocols on one port.
///
/// NIO registers an accepted connection only after the future of `setup` has succeeded, and only
/// then do bytes arrive. So the sniff is a future inside the value, never the future that is
/// returned.
struct PortChildChannel: ServerChildChannel {
  let roster: ConnectionRoster
  /// Makes the handler of a connection whose client is watched.
  let http1: @Sendable (ClientWatch) -> HTTP1Channel
  let http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
  let sniffTimeMax: TimeAmount

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<PortConnection> {
    roster.enter(channel)
    let client = ClientWatch()
    let http1 = http1(client)
    guard let http2 else {
      return setUp(http1, client, on: channel, logger).map { value in
        PortConnection(
          channel: channel,
          client: client,
          conversation: channel.eventLoop.makeSucceededFuture(.http1(value))
        )
      }
    }
    let promise = channel.eventLoop.makePromise(of: PortConnection.Conversation.self)
    return channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(
        ConnectionSniffer(
          timeMax: sniffTimeMax,
          configure: { [roster] verdict in
            if verdict == .http2 { roster.noteMultiplexed(channel) }
            let configured =
              switch verdict {
              case .http2:
                http2(channel).map { PortConnection.Conversation.http2 }
              case .http1, .undecided:
                setUp(http1, client, on: channel, logger)
                  .map { PortConnection.Conversation.http1($0) }
              }
            configured.cascade(to: promise)
            return configured.map { _ in }
          },
          failed: { promise.fail($0) }
        )
      )
      return PortConnection(
        channel: channel,
        client: client,
        conversation: promise.futureResult
      )
    }
  }

  private func setUp(
    _ http1: HTTP1Channel,
    _ client: ClientWatch,
    on channel: any Channel,
    _ logger: Logger
  ) -> EventLoopFuture<HTTP1Channel.Value> {
    http1.setup(channel: channel, logger: logger).flatMapThrowing { value in
      try client.install(on: channel)
      return value
    }
  }

  func handle(value: PortConnection, logger: Logger) async {
    await withTaskCancellationHandler {
      do {
        switch try await value.conversation.get() {
        case .http1(let channel):
          await http1(value.client).handle(value: channel, logger: logger)
        case .http2: try await value.channel.closeFuture.get()
        }
      } catch {
        logger.trace("A connection ended early", metadata: ["error": "\(error)"])
      }
    } onCancel: {
      // A connection whose client has left stays open until the responder has ended, so that others
      // who wait for that end, such as the pool of workers, are told.
      if !value.client.hasLeft { value.channel.close(promise: nil) }
    }
  }
}
