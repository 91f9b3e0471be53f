import HummingbirdCore
import Logging
import NIOCore

/// An accepted connection whose protocol may not be known yet.
struct PortConnection: ServerChildChannelValue {
  let channel: any Channel
  let conversation: EventLoopFuture<Conversation>

  /// What a connection turned out to speak.
  enum Conversation: Sendable {
    case http1(HTTP1Channel.Value)
    case http2
  }
}

/// Accepts connections of both protocols on one port.
///
/// NIO registers an accepted connection only after the future of `setup` has succeeded, and bytes
/// come only then. So the sniff is a future inside the value, never the future that is returned.
struct PortChildChannel: ServerChildChannel {
  let http1: HTTP1Channel
  let http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
  let sniffTimeMax: TimeAmount

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<PortConnection> {
    guard let http2 else {
      return http1.setup(channel: channel, logger: logger).map { value in
        PortConnection(
          channel: channel,
          conversation: channel.eventLoop.makeSucceededFuture(.http1(value))
        )
      }
    }
    let promise = channel.eventLoop.makePromise(of: PortConnection.Conversation.self)
    return channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(
        ConnectionSniffer(
          timeMax: sniffTimeMax,
          configure: { verdict in
            let configured =
              switch verdict {
              case .http2:
                http2(channel).map { PortConnection.Conversation.http2 }
              case .http1, .undecided:
                http1.setup(channel: channel, logger: logger)
                  .map { PortConnection.Conversation.http1($0) }
              }
            configured.cascade(to: promise)
            return configured.map { _ in }
          },
          failed: { promise.fail($0) }
        )
      )
      return PortConnection(channel: channel, conversation: promise.futureResult)
    }
  }

  func handle(value: PortConnection, logger: Logger) async {
    await withTaskCancellationHandler {
      do {
        switch try await value.conversation.get() {
        case .http1(let channel): await http1.handle(value: channel, logger: logger)
        case .http2: try await value.channel.closeFuture.get()
        }
      } catch {
        logger.trace("A connection ended early", metadata: ["error": "\(error)"])
      }
    } onCancel: {
      value.channel.close(promise: nil)
    }
  }
}
