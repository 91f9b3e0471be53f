import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A request as received.
struct RawRequest: Sendable {
  var line: String
  var headers: [String]
  var body: [UInt8]

  func header(_ name: String) -> String? {
    headers.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
      .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
  }
}

/// A small HTTP/1.1 server whose responses a test writes byte by byte.
struct RawServer: Sendable {
  /// The connection of one request.
  struct Connection: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    let closed: AsyncStream<Void>

    func write(_ text: String) async throws { try await write(Array(text.utf8)) }
    func write(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }
    func reply(_ status: String = "200 OK", headers: [String] = [], body: String) async throws {
      let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers
      try await write(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    }
  }

  struct HangupError: Error {}

  let port: Int
  let connections = ConnectionCount()

  var url: String { "http://127.0.0.1:\(port)" }
  /// The URL for clients that do not bypass the environment's proxy for loopback by themselves.
  var unproxiedURL: String { "http://localhost:\(port)" }

  /// Runs a server while `body` runs.
  ///
  /// A handler that throws `HangupError` closes its connection without a further response.
  static func run<R: Sendable>(
    _ handler: @escaping @Sendable (RawRequest, Connection) async throws -> Void,
    _ body: @escaping @Sendable (RawServer) async throws -> R
  ) async throws -> R {
    _ = hostileProxy
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.backlog, value: 256)
      .childChannelOption(.autoRead, value: false)
      .bind(host: "127.0.0.1", port: 0) { $0.eventLoop.makeSucceededFuture($0) }
    let server = RawServer(port: listener.channel.localAddress?.port ?? 0)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await withThrowingDiscardingTaskGroup { connections in
          try await listener.executeThenClose { inbound in
            for try await connection in inbound {
              server.connections.add()
              connections.addTask { await serve(connection, handler) }
            }
          }
        }
      }
      let result = try await body(server)
      group.cancelAll()
      // The accept loop ends by throwing when it is cancelled.
      while (try? await group.next()) != nil {}
      return result
    }
  }

  private static func serve(
    _ accepted: any Channel,
    _ handler: @escaping @Sendable (RawRequest, Connection) async throws -> Void
  ) async {
    // Wrapped here and not on acceptance, because a connection accepted as the server ends is
    // dropped, and a dropped `NIOAsyncChannel` ends the process.
    let wrapped = try? await accepted.eventLoop.submit {
      try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: accepted)
    }.get()
    guard let channel = wrapped else { return }
    // Clients break connections on purpose in several tests.
    try? await channel.executeThenClose { inbound, outbound in
      try await accepted.setOption(.autoRead, value: true).get()
      let (requests, feed) = AsyncStream<RawRequest>.makeStream()
      let (closed, close) = AsyncStream<Void>.makeStream()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          defer {
            feed.finish()
            close.finish()
          }
          var buffer: [UInt8] = []
          for try await piece in inbound {
            buffer += Array(buffer: piece)
            while let request = next(&buffer) { feed.yield(request) }
          }
        }
        for await request in requests {
          try await handler(request, Connection(outbound: outbound, closed: closed))
        }
        group.cancelAll()
      }
    }
  }

  private static func next(_ buffer: inout [UInt8]) -> RawRequest? {
    let text = String(decoding: buffer, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n") else { return nil }
    let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
    let headBytes = text[..<end.upperBound].utf8.count
    var request = RawRequest(line: lines[0], headers: Array(lines.dropFirst()), body: [])
    let length = request.header("content-length").flatMap { Int($0) } ?? 0
    guard buffer.count >= headBytes + length else { return nil }
    request.body = Array(buffer[headBytes..<headBytes + length])
    buffer.removeFirst(headBytes + length)
    return request
  }

  /// A proxy setting for an unused port; every test thereby shows that loopback bypasses the proxy.
  ///
  /// Only the name `localhost`, as in `unproxiedURL`, is exempt.
  private static let hostileProxy: Void = {
    setenv("no_proxy", "localhost", 1)
    setenv("http_proxy", "http://127.0.0.1:9", 1)
    setenv("all_proxy", "http://127.0.0.1:9", 1)
  }()
}

/// The number of connections that a server has accepted.
final class ConnectionCount: Sendable {
  private let count = Mutex(0)
  var now: Int { count.withLock { $0 } }
  func add() { count.withLock { $0 += 1 } }
}
