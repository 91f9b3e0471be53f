#if !canImport(Darwin)
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOWebSocket

  /// WebSockets over SwiftNIO, without TLS.
  struct PlatformSockets: MessageSockets {
    private typealias Frames = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    func withSocket(
      _ url: String,
      _ body: @escaping @Sendable (MessageSocket) async throws -> Void
    ) async throws {
      let frames = try await connect(try Address(url))
      do {
        try await frames.executeThenClose { inbound, outbound in
          let messages = inbound.compactMap { frame -> String? in
            switch frame.opcode {
            case .text: return String(buffer: frame.unmaskedData)
            case .ping: try await outbound.write(Self.frame(.pong, frame.unmaskedData))
            case .connectionClose:
              try await outbound.write(Self.frame(.connectionClose, frame.unmaskedData))
              throw ChannelError.eof
            default: break
            }
            return nil
          }
          try await body(
            MessageSocket(messages: messages) { texts in
              try await outbound.write(
                contentsOf: texts.map { Self.frame(.text, ByteBuffer(string: $0)) }
              )
            }
          )
        }
      } catch let error as any NIOError {
        throw DatabaseError.notConnected(error)
      }
    }

    private static func frame(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
      WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }

    private func connect(_ address: Address) async throws -> Frames {
      let upgrade: EventLoopFuture<Frames?>
      do {
        upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
          .connectTimeout(.seconds(Self.connectSecondsMax))
          .connect(host: address.host, port: address.port) { channel in
            channel.eventLoop.makeCompletedFuture { try Self.upgrade(channel, to: address) }
          }
      } catch {
        throw DatabaseError.notConnected(error)
      }
      guard let frames = try await upgrade.get() else {
        throw DatabaseError(.unavailable, "the server at \(address.host) opens no WebSocket")
      }
      return frames
    }

    private static func upgrade(
      _ channel: any Channel,
      to address: Address
    ) throws -> EventLoopFuture<Frames?> {
      let upgrader = NIOTypedWebSocketClientUpgrader<Frames?>(
        maxFrameSize: frameBytesMax,
        upgradePipelineHandler: { channel, _ in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
              NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0,
                maxAccumulatedFrameCount: 64,
                maxAccumulatedFrameSize: frameBytesMax
              )
            )
            return try Frames(wrappingChannelSynchronously: channel)
          }
        }
      )
      let head = HTTPRequestHead(
        version: .http1_1,
        method: .GET,
        uri: address.target,
        headers: ["Host": "\(address.host):\(address.port)"]
      )
      return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
        configuration: .init(
          upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: head,
            upgraders: [upgrader],
            notUpgradingCompletionHandler: { $0.eventLoop.makeSucceededFuture(nil) }
          )
        )
      )
    }

    /// The parts of a `ws` URL.
    private struct Address {
      var host: String
      var port: Int
      var target: String

      init(_ url: String) throws {
        let scheme = "ws://"
        guard url.hasPrefix(scheme) else {
          throw DatabaseError(
            .failedPrecondition,
            "on this platform a lasting connection reaches an emulator only, at http://…"
          )
        }
        let rest = url.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" }
        target = String(rest.dropFirst(authority.count))
        let colon = authority.lastIndex(of: ":")
        port = colon.flatMap { Int(authority[authority.index(after: $0)...]) } ?? 80
        host = String(colon.map { authority[..<$0] } ?? authority)
      }
    }

    /// The maximum length of a frame, which has at most 16 384 units of UTF-16.
    private static let frameBytesMax = 256 << 10
    private static let connectSecondsMax: Int64 = 5
  }

  private protocol NIOError: Error {}
  extension ChannelError: NIOError {}
  extension IOError: NIOError {}
#endif
