import HTTP2Server
import HTTPSupport
import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import ServiceLifecycle
import SwiftProtobuf

typealias Text = Google_Protobuf_StringValue

/// A small HTTP/2 client with which a test controls every frame.
struct HTTP2Client: Sendable {
  typealias Frames = NIOAsyncChannel<HTTP2Frame.FramePayload, HTTP2Frame.FramePayload>

  let connection: any Channel
  private let multiplexer: NIOHTTP2Handler.AsyncStreamMultiplexer<Frames>

  /// Connects, runs `body` and closes the connection.
  static func with<Result: Sendable>(
    _ address: ServerAddress,
    _ body: (HTTP2Client) async throws -> Result
  ) async throws -> Result {
    guard case .tcp(let host, let port) = address else { throw CancellationError() }
    let (connection, multiplexer) = try await ClientBootstrap(
      group: MultiThreadedEventLoopGroup.singleton
    )
    .connect(host: host, port: port) { channel in
      channel.configureAsyncHTTP2Pipeline(mode: .client) { stream in
        wrap(stream)
      }
      .map { (channel, $0) }
    }
    do {
      let result = try await body(HTTP2Client(connection: connection, multiplexer: multiplexer))
      try? await connection.close()  // Closed by the server already, perhaps.
      return result
    } catch {
      try? await connection.close()  // As above; the error of the body counts.
      throw error
    }
  }

  private static func wrap(_ stream: any Channel) -> EventLoopFuture<Frames> {
    stream.eventLoop.makeCompletedFuture { try Frames(wrappingChannelSynchronously: stream) }
  }

  /// Opens a stream and runs `body` with it; resets the stream if it is still open afterwards.
  func stream<Result: Sendable>(_ body: (inout Call) async throws -> Result) async throws -> Result
  {
    let frames = try await multiplexer.openStream { Self.wrap($0) }
    return try await frames.executeThenClose { inbound, outbound in
      var call = Call(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      return try await body(&call)
    }
  }

  /// Makes a complete call with the request bytes in one frame.
  func call(
    _ path: String,
    headers: HPACKHeaders = [:],
    body: ByteBuffer
  ) async throws -> Reply {
    try await stream { call in
      try await call.open(path, headers: headers)
      // A response to the headers alone may have ended the stream already; the reply shows that.
      try? await call.send(body, end: true)
      return try await call.reply()
    }
  }

  /// Makes a complete call with one message.
  func call(_ path: String, headers: HPACKHeaders = [:], _ text: String) async throws -> Reply {
    try await call(path, headers: headers, body: framed(text))
  }

  struct Call {
    var inbound: NIOAsyncChannelInboundStream<HTTP2Frame.FramePayload>.AsyncIterator
    let outbound: NIOAsyncChannelOutboundWriter<HTTP2Frame.FramePayload>

    func open(_ path: String, headers: HPACKHeaders = [:], end: Bool = false) async throws {
      var all: HPACKHeaders = [
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
        "te": "trailers",
      ]
      if !headers.contains(name: "content-type") {
        all.add(name: "content-type", value: "application/grpc")
      }
      all.add(contentsOf: headers.map { ($0.name, $0.value) })
      try await outbound.write(.headers(.init(headers: all, endStream: end)))
    }

    func send(_ bytes: ByteBuffer, end: Bool = false) async throws {
      try await outbound.write(.data(.init(data: .byteBuffer(bytes), endStream: end)))
    }

    func reset() async throws {
      try await outbound.write(.rstStream(.cancel))
    }

    /// Returns the next headers or data of the reply; nil after the last.
    mutating func next() async throws -> HTTP2Frame.FramePayload? {
      while let frame = try await inbound.next() {
        switch frame {
        case .headers, .data: return frame
        default: continue
        }
      }
      return nil
    }

    /// Reads the reply to the end of the stream.
    mutating func reply() async throws -> Reply {
      var reply = Reply()
      do {
        while let frame = try await inbound.next() {
          switch frame {
          case .headers(let payload): reply.headers.append(payload.headers)
          case .data(let payload):
            if case .byteBuffer(let bytes) = payload.data { reply.body.writeImmutableBuffer(bytes) }
          default: break
          }
        }
      } catch let error as NIOHTTP2Errors.StreamClosed {
        reply.reset = error.errorCode
      }
      return reply
    }
  }

  struct Reply {
    var headers: [HPACKHeaders] = []
    var body = ByteBuffer()
    var reset: HTTP2ErrorCode?

    var trailers: HPACKHeaders { headers.last ?? [:] }
    var status: String? { trailers.first(name: "grpc-status") }
    var message: String? { trailers.first(name: "grpc-message") }

    var texts: [String] {
      get throws {
        var rest = body
        var texts: [String] = []
        while rest.readInteger(as: UInt8.self) == 0, let length = rest.readInteger(as: UInt32.self),
          let bytes = rest.readBytes(length: Int(length))
        {
          texts.append(try Text(serializedBytes: bytes).value)
        }
        return texts
      }
    }
  }
}

/// A message with its prefix.
func framed(_ text: String) throws -> ByteBuffer {
  let bytes: [UInt8] = try Text(text).serializedBytes()
  var frame = ByteBuffer()
  frame.writeInteger(0 as UInt8)
  frame.writeInteger(UInt32(bytes.count))
  frame.writeBytes(bytes)
  return frame
}

/// Runs `body` with a gRPC server and an HTTP/1.1 server on one free port.
func withServer<Result: Sendable>(
  configuration: GRPCServer.Configuration = GRPCServer.Configuration(),
  http: HTTPService.Configuration = HTTPService.Configuration(),
  budget: TransferBudget? = nil,
  logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
  _ register: (inout GRPCService) -> Void,
  _ body: (ServerAddress, ServiceGroup) async throws -> Result,
  rest: HTTP2Responder? = nil
) async throws -> Result {
  var service = GRPCService(name: "test.Echo")
  register(&service)
  let server = GRPCServer(
    services: [service],
    rest: rest,
    configuration: configuration,
    budget: budget,
    logger: logger
  )
  let (listening, continuation) = AsyncStream<ServerAddress>.makeStream()
  let listener = HTTPService(
    address: .tcp(host: "127.0.0.1", port: 0),
    http2: server.configure,
    configuration: http,
    logger: logger,
    onListening: { continuation.yield($0) },
    responder: { _, _ in .text("http") }
  )
  let group = ServiceGroup(services: [listener], logger: logger)
  async let running: Void = {
    defer { continuation.finish() }
    try await group.run()
  }()
  guard let address = await listening.first(where: { _ in true }) else {
    try await running
    throw CancellationError()
  }
  do {
    let result = try await body(address, group)
    await group.triggerGracefulShutdown()
    try await running
    return result
  } catch {
    await group.triggerGracefulShutdown()
    throw error
  }
}
