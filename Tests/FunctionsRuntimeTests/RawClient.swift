import HTTPSupport
import NIOCore
import NIOPosix

/// A client that sends and receives HTTP as text over one connection.
struct RawClient {
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>

  /// Connects, runs `body` and closes the connection.
  static func with<Result: Sendable>(
    _ address: ServerAddress,
    _ body: (inout RawClient) async throws -> Result
  ) async throws -> Result {
    let wrap: @Sendable (any Channel) -> EventLoopFuture<NIOAsyncChannel<ByteBuffer, ByteBuffer>> =
      {
        channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel(wrappingChannelSynchronously: channel)
        }
      }
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    let channel =
      switch address {
      case .tcp(let host, let port):
        try await bootstrap.connect(host: host, port: port, channelInitializer: wrap)
      case .unixSocket(let path):
        try await bootstrap.connect(unixDomainSocketPath: path, channelInitializer: wrap)
      }
    return try await channel.executeThenClose { inbound, outbound in
      var client = RawClient(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      return try await body(&client)
    }
  }

  /// Sends a call without waiting for the response.
  func send(_ name: String, _ json: String) async throws {
    let text =
      "POST /\(name) HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      + "content-length: \(json.utf8.count)\r\n\r\n\(json)"
    try await outbound.write(ByteBuffer(string: text))
  }

  /// Sends text verbatim.
  func send(raw text: String) async throws {
    try await outbound.write(ByteBuffer(string: text))
  }

  /// Reads until the received text contains `text` or the server closes.
  mutating func receive(until text: String) async throws -> String {
    var received = ""
    while !received.contains(text), let bytes = try await inbound.next() {
      received += String(buffer: bytes)
    }
    return received
  }
}
