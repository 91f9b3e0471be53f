import HTTPSupport
import HTTPTypes
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import Testing

@Suite("Upgrades to another protocol")
struct UpgradeTests {
  /// Speaks a protocol that repeats every byte, for clients that know the word.
  private struct EchoUpgrader: HTTPServerProtocolUpgrader {
    let supportedProtocol = "echo"
    let requiredUpgradeHeaders: [String] = []

    func buildUpgradeResponse(
      channel: any Channel,
      upgradeRequest: HTTPRequestHead,
      initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
      guard upgradeRequest.uri == "/echo", upgradeRequest.headers["word"] == ["open"] else {
        return channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
      }
      return channel.eventLoop.makeSucceededFuture(["Upgrade": "echo", "Connection": "upgrade"])
    }

    func upgrade(
      context: ChannelHandlerContext,
      upgradeRequest: HTTPRequestHead
    ) -> EventLoopFuture<Void> {
      context.eventLoop.makeCompletedFuture {
        try context.pipeline.syncOperations.addHandler(Echo())
      }
    }
  }

  private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      context.writeAndFlush(data, promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if event is ChannelShouldQuiesceEvent { context.close(promise: nil) }
    }
  }

  private static func handshake(_ path: String = "/echo", word: String = "open") -> String {
    "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: Echo\r\n"
      + "Word: \(word)\r\n\r\n"
  }

  @Test("After the handshake the connection is the upgrader's, with the bytes that came along")
  func takesOver() async throws {
    try await withService(upgrader: EchoUpgrader(), responder: { _, _ in .text("no") }) {
      address,
      group in
      try await RawConnection.with(address) { client in
        try await client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try await client.receive(until: "no").contains("200 OK"))
        try await client.send(Self.handshake() + "early,")
        let answer = try await client.receive(until: "early,")
        #expect(answer.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
        #expect(answer.hasSuffix("\r\n\r\nearly,"))
        try await client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(try await client.receive(until: "\r\n\r\n") == "GET / HTTP/1.1\r\n\r\n")

        await group.triggerGracefulShutdown()
        #expect(try await client.receiveAll() == "")
      }
    }
  }

  @Test(
    "A refused or unknown handshake is an ordinary request, after which the connection closes",
    arguments: [
      handshake("/other"), handshake(word: "wrong"),
      handshake().replacing("Upgrade: Echo", with: "Upgrade: h2c"),
    ]
  )
  func refuses(request: String) async throws {
    try await withService(upgrader: EchoUpgrader(), responder: { _, _ in .text("ordinary") }) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send(request)
        let answer = try await client.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("Connection: close\r\n"))
        #expect(answer.hasSuffix("ordinary"))
      }
    }
  }

  @Test("What the screen refuses is not upgraded")
  func isScreened() async throws {
    try await withService(upgrader: EchoUpgrader(), responder: { _, _ in .text("no") }) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send(
          Self.handshake().replacing("Word", with: "Authorization: refused\r\nWord")
        )
        #expect(try await client.receive(until: "screened").hasPrefix("HTTP/1.1 403 "))
      }
    }
  }
}
