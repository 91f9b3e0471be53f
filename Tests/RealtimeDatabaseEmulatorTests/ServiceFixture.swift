import DatabaseModel
import DatabaseTree
import DocumentModel
import EventLog
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import RealtimeDatabaseEmulator
import ServiceLifecycle
import StorageEngine
import Synchronization
import TestSupport
import Testing

/// A running database with its port.
struct ServiceFixture: Sendable {
  let database: RealtimeDatabase
  let service: RealtimeDatabaseService
  let clock = ManualClock()
  let time = WallClock()

  struct Reply {
    var status: Int
    var headers: HTTPFields
    var body: String
  }

  private init(_ budget: TransferBudget?) {
    let storage = MemoryStorage()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    database = RealtimeDatabase(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: logger),
      project: "demo-test",
      now: { [time] in time.now() },
      captureDepth: { _, path in path.count },
      logger: logger
    )
    service = RealtimeDatabaseService(
      database: database,
      budget: budget,
      clock: clock,
      logger: logger
    )
  }

  /// Runs `body` beside a running database.
  static func with<Result: Sendable>(
    budget: TransferBudget? = nil,
    _ body: @Sendable (ServiceFixture) async throws -> Result
  ) async throws -> Result {
    let fixture = ServiceFixture(budget)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await fixture.database.run() }
      group.addTask { try await fixture.service.run() }
      defer { group.cancelAll() }
      return try await body(fixture)
    }
  }

  /// Sends a request as the administrator, unless `headers` have another credential.
  func send(
    _ method: HTTPRequest.Method,
    _ target: String,
    _ body: String = "",
    _ headers: HTTPFields = [.authorization: "Bearer owner"]
  ) async throws -> Reply {
    let response = await respond(method, target, body, headers)
    let text = String(buffer: try await response.body.collect(upTo: 1 << 24))
    return Reply(status: response.status.code, headers: response.headers, body: text)
  }

  func respond(
    _ method: HTTPRequest.Method,
    _ target: String,
    _ body: String = "",
    _ headers: HTTPFields = [.authorization: "Bearer owner"]
  ) async -> Response {
    let head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "localhost:9000",
      path: target,
      headerFields: headers
    )
    return await service.respond(
      to: Request(head: head, body: .whole(ByteBuffer(string: body)))
    )
  }

  /// `{"alg":"none"}` and `{"sub":"u","exp":1700000100}`.
  static let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1IiwiZXhwIjoxNzAwMDAwMTAwfQ."

  func setRules(_ rules: String) async throws {
    let reply = try await send(.put, "/.settings/rules.json?ns=test", rules)
    #expect(reply.body == #"{"status":"ok"}"#)
  }

  /// Returns the value at a path.
  func value(_ path: String) async throws -> String {
    try await send(.get, "/\(path).json?ns=test&format=export").body
  }

  /// Waits for the value at a path.
  func waitFor(_ path: String, _ json: String) async throws {
    try await eventually("\(path) is \(json)") { try await value(path) == json }
  }

  // MARK: - Sockets

  /// Listens and runs `body`, which gets the port.
  func withPort<Result: Sendable>(
    _ body: (_ port: Int, ServiceGroup) async throws -> Result
  ) async throws -> Result {
    let (listening, continuation) = AsyncStream<ServerAddress>.makeStream()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let http = HTTPService(
      address: .tcp(host: "127.0.0.1", port: 0),
      logger: logger,
      onListening: { continuation.yield($0) },
      onQuiesce: { [service] in service.endAll() },
      upgrader: service.upgrader
    ) { [service] request, _ in await service.respond(to: request) }
    let group = ServiceGroup(services: [http], logger: logger)
    async let running: Void = {
      defer { continuation.finish() }
      try await group.run()
    }()
    guard let port = await listening.first(where: { _ in true })?.port else {
      try await running
      throw CancellationError()
    }
    do {
      let result = try await body(port, group)
      await group.triggerGracefulShutdown()
      try await running
      return result
    } catch {
      await group.triggerGracefulShutdown()
      throw error
    }
  }

  /// Connects a client and runs `body`.
  static func withSocket<Result: Sendable>(
    port: Int,
    _ target: String = "/.ws?v=5&ns=test",
    _ body: (inout SocketClient) async throws -> Result
  ) async throws -> Result {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var client = SocketClient(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      try await client.shakeHands(target, port: port)
      return try await body(&client)
    }
  }
}

/// A client that writes and reads the frames of a WebSocket itself.
struct SocketClient {
  var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var received = ByteBuffer()
  private var number = 0

  init(
    inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
    outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    self.inbound = inbound
    self.outbound = outbound
  }

  mutating func shakeHands(_ target: String, port: Int) async throws {
    try await outbound.write(
      ByteBuffer(
        string: "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: Upgrade\r\n"
          + "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
      )
    )
    let end = Array("\r\n\r\n".utf8)
    while true {
      let bytes = Array(received.readableBytesView)
      if let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) {
        let head = received.readString(length: start + end.count) ?? ""
        #expect(head.hasPrefix("HTTP/1.1 101 "))
        #expect(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        return
      }
      try await receiveMore()
    }
  }

  private mutating func receiveMore() async throws {
    guard var bytes = try await inbound.next() else { throw ChannelError.eof }
    received.writeBuffer(&bytes)
  }

  /// Sends a frame; the mask is zero, so the text stays as it is.
  func sendFrame(_ text: [UInt8], opcode: UInt8 = 1, isFinal: Bool = true) async throws {
    var frame = ByteBuffer()
    frame.writeInteger(UInt8(isFinal ? 0x80 : 0) | opcode)
    if text.count < 126 {
      frame.writeInteger(0x80 | UInt8(text.count))
    } else if text.count < 1 << 16 {
      frame.writeInteger(UInt8(0x80 | 126))
      frame.writeInteger(UInt16(text.count))
    } else {
      frame.writeInteger(UInt8(0x80 | 127))
      frame.writeInteger(UInt64(text.count))
    }
    frame.writeInteger(UInt32(0))
    frame.writeBytes(text)
    try await outbound.write(frame)
  }

  func send(_ text: String) async throws { try await sendFrame(Array(text.utf8)) }

  /// Sends a request and returns its number.
  @discardableResult
  mutating func request(_ action: String, _ body: String) async throws -> Int {
    number += 1
    try await send(#"{"t":"d","d":{"r":\#(number),"a":"\#(action)","b":\#(body)}}"#)
    return number
  }

  /// Returns the text of the next frame; nil once the server has closed the socket.
  mutating func receive() async throws -> String? {
    while true {
      if let (opcode, text) = nextFrame() { return opcode == 8 ? nil : text }
      do {
        try await receiveMore()
      } catch {
        return nil
      }
    }
  }

  private mutating func nextFrame() -> (opcode: UInt8, text: String)? {
    var rest = received
    guard let first = rest.readInteger(as: UInt8.self),
      let second = rest.readInteger(as: UInt8.self)
    else { return nil }
    var length = Int(second & 0x7F)
    if length == 126 {
      guard let long = rest.readInteger(as: UInt16.self) else { return nil }
      length = Int(long)
    } else if length == 127 {
      guard let long = rest.readInteger(as: UInt64.self) else { return nil }
      length = Int(long)
    }
    guard let text = rest.readString(length: length) else { return nil }
    received = rest
    return (first & 0x0F, text)
  }

  /// Returns the next messages without the hello.
  mutating func receive(_ count: Int) async throws -> [String] {
    var messages: [String] = []
    while messages.count < count {
      let message = try #require(try await receive())
      if !message.contains(#""t":"h""#) { messages.append(message) }
    }
    return messages
  }

  func close() { outbound.finish() }
}
