import NIOCore
import NIOPosix

/// A client of PostgreSQL's protocol, version 3, with one prepared statement.
///
/// `@unchecked Sendable`: all properties are accessed only on the connection's event loop.
final class PostgreSQLConnection: ChannelInboundHandler, LoadConnection, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var context: ChannelHandlerContext?
  private var input = ByteBuffer()
  private var report: ((Result<ByteBuffer, any Error>) -> Void)?
  private var failure: BenchmarkError?

  /// Connects as the user `benchmark`, without a password, and prepares `statement`.
  static func connect(
    to address: Address,
    preparing statement: String,
    on loop: any EventLoop
  ) -> EventLoopFuture<any LoadConnection> {
    ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: address.host, port: address.port)
      .flatMap { channel -> EventLoopFuture<PostgreSQLConnection> in
        let connection = PostgreSQLConnection()
        let promise = loop.makePromise(of: PostgreSQLConnection.self)
        do {
          try channel.pipeline.syncOperations.addHandler(connection)
        } catch {
          promise.fail(error)
        }
        connection.exchange(startUp) { reply in
          if case .failure(let error) = reply { return promise.fail(error) }
          connection.exchange(parse(statement)) { reply in
            promise.completeWith(reply.map { _ in connection })
          }
        }
        return promise.futureResult
      }
      .map { $0 }
  }

  /// Encodes an execution of the prepared statement with these parameters, for `send`.
  static func execution(with values: [String]) -> ByteBuffer {
    var bytes = ByteBuffer()
    message("B", into: &bytes) { bytes in
      bytes.writeBytes([0, 0])
      bytes.writeInteger(UInt16(0))
      bytes.writeInteger(UInt16(values.count))
      for value in values {
        bytes.writeInteger(UInt32(value.utf8.count))
        bytes.writeString(value)
      }
      bytes.writeInteger(UInt16(0))
    }
    message("E", into: &bytes) { $0.writeBytes([0, 0, 0, 0, 0]) }
    message("S", into: &bytes) { _ in }
    return bytes
  }

  private static var startUp: ByteBuffer {
    var content = ByteBuffer()
    content.writeInteger(UInt32(3 << 16))
    for text in ["user", "benchmark", "database", "postgres"] {
      content.writeString(text)
      content.writeInteger(UInt8(0))
    }
    content.writeInteger(UInt8(0))
    var bytes = ByteBuffer()
    bytes.writeInteger(UInt32(content.readableBytes + 4))
    bytes.writeBuffer(&content)
    return bytes
  }

  private static func parse(_ statement: String) -> ByteBuffer {
    var bytes = ByteBuffer()
    message("P", into: &bytes) { bytes in
      bytes.writeInteger(UInt8(0))
      bytes.writeString(statement)
      bytes.writeBytes([0, 0, 0])
    }
    message("S", into: &bytes) { _ in }
    return bytes
  }

  private static func message(
    _ kind: Character,
    into bytes: inout ByteBuffer,
    _ content: (inout ByteBuffer) -> Void
  ) {
    bytes.writeString(String(kind))
    let start = bytes.writerIndex
    bytes.writeInteger(UInt32(0))
    content(&bytes)
    bytes.setInteger(UInt32(bytes.writerIndex - start), at: start)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func send(_ body: ByteBuffer, then report: @escaping (Result<ByteBuffer, any Error>) -> Void) {
    exchange(body, then: report)
  }

  private func exchange(
    _ bytes: ByteBuffer,
    then report: @escaping (Result<ByteBuffer, any Error>) -> Void
  ) {
    guard let context else { return report(.failure(BenchmarkError("The connection is closed."))) }
    self.report = report
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func close() {
    context?.close(promise: nil)
  }

  /// Processes messages up to ReadyForQuery.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    input.writeImmutableBuffer(unwrapInboundIn(data))
    while let kind: UInt8 = input.getInteger(at: input.readerIndex),
      let length: UInt32 = input.getInteger(at: input.readerIndex + 1),
      input.readableBytes > Int(length)
    {
      let message = input.readSlice(length: Int(length) + 1) ?? ByteBuffer()
      switch kind {
      case UInt8(ascii: "E"):
        failure = BenchmarkError("PostgreSQL: \(String(buffer: message).dropFirst(5))")
      case UInt8(ascii: "Z"):
        let failure = self.failure
        self.failure = nil
        finish(failure.map { .failure($0) } ?? .success(ByteBuffer()))
      default: break
      }
    }
    input.discardReadBytes()
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish(.failure(failure ?? BenchmarkError("PostgreSQL closed the connection.")))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    finish(.failure(error))
    context.close(promise: nil)
  }

  private func finish(_ result: Result<ByteBuffer, any Error>) {
    let report = self.report
    self.report = nil
    report?(result)
  }
}

/// The creates and gets of `FirestoreLoad` on a table of documents.
struct PostgreSQLLoad: Sendable {
  var address: Address

  private static let storedDocuments = 2000

  /// Creates the table and the rows that `get` reads.
  func prepare() async throws {
    try await run("CREATE TABLE documents (path text PRIMARY KEY, data jsonb NOT NULL)")
    try await run(
      """
      INSERT INTO documents SELECT 'read/d' || n, jsonb_build_object('n', n, 'author', \
      'user-' || n % 100, 'text', '\(Self.text)', 'isRead', false) \
      FROM generate_series(0, \(Self.storedDocuments - 1)) AS n
      """
    )
  }

  /// Creates one document in each transaction.
  func create(_ load: Load, collection: String) async throws -> Measurement {
    try await load.run {
      connect("INSERT INTO documents VALUES ($1, $2::text::jsonb)", on: $0)
    } body: { client, number in
      PostgreSQLConnection.execution(with: [
        "\(collection)/c\(client)-\(number)",
        #"{"n":\#(number),"author":"user-\#(number % 100)","text":"\#(Self.text)","isRead":false}"#,
      ])
    }
  }

  /// Reads documents that `prepare` has stored.
  func get(_ load: Load) async throws -> Measurement {
    try await load.run {
      connect("SELECT data FROM documents WHERE path = $1", on: $0)
    } body: { client, number in
      let index = (number * 1009 + client * 131) % Self.storedDocuments
      return PostgreSQLConnection.execution(with: ["read/d\(index)"])
    }
  }

  private static let text = "The knee is better today, I walked for half an hour."

  private func run(_ statement: String) async throws {
    let loop = Load.eventLoops.next()
    try await connect(statement, on: loop).flatMap { connection in
      let promise = loop.makePromise(of: Void.self)
      promise.failing(at: .now() + .seconds(10))
      connection.send(PostgreSQLConnection.execution(with: [])) { reply in
        promise.completeWith(reply.map { _ in })
        connection.close()
      }
      return promise.futureResult
    }.get()
  }

  private func connect(
    _ statement: String,
    on loop: any EventLoop
  ) -> EventLoopFuture<any LoadConnection> {
    PostgreSQLConnection.connect(to: address, preparing: statement, on: loop)
  }
}
