import NIOCore
import NIOPosix

/// A keep-alive client of one URL, with one request at a time and minimal parsing of responses.
///
/// `@unchecked Sendable`: all properties are accessed only on the connection's event loop.
final class HTTP1Connection: ChannelInboundHandler, LoadConnection, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let head: String
  private let status: Int
  private var context: ChannelHandlerContext?
  private var input = ByteBuffer()
  private var report: ((Result<ByteBuffer, any Error>) -> Void)?

  private init(
    method: String,
    path: String,
    host: String,
    authorization: String?,
    status: Int
  ) {
    self.status = status
    let fields = authorization.map { "authorization: \($0)\r\n" } ?? ""
    head =
      "\(method) \(path) HTTP/1.1\r\nhost: \(host)\r\n\(fields)"
      + "content-type: application/json\r\ncontent-length:"
  }

  /// Connects for requests to a path.
  static func connect(
    to address: Address,
    method: String = "POST",
    path: String,
    authorization: String? = nil,
    expecting status: Int = 200,
    on loop: any EventLoop
  ) -> EventLoopFuture<any LoadConnection> {
    ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: address.host, port: address.port)
      .flatMapThrowing { channel in
        let connection = HTTP1Connection(
          method: method,
          path: path,
          host: "\(address)",
          authorization: authorization,
          status: status
        )
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
      }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func send(_ body: ByteBuffer, then report: @escaping (Result<ByteBuffer, any Error>) -> Void) {
    guard let context else { return report(.failure(BenchmarkError("The connection is closed."))) }
    self.report = report
    var bytes = ByteBuffer()
    bytes.writeString(head)
    bytes.writeString(" \(body.readableBytes)\r\n\r\n")
    bytes.writeImmutableBuffer(body)
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func close() {
    context?.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    input.writeImmutableBuffer(unwrapInboundIn(data))
    do {
      guard let reply = try ReplyHead(input),
        input.readableBytes >= reply.headBytes + reply.bodyBytes
      else { return }
      input.moveReaderIndex(forwardBy: reply.headBytes)
      let body = input.readSlice(length: reply.bodyBytes) ?? ByteBuffer()
      input.discardReadBytes()
      guard reply.status == status else {
        throw BenchmarkError("HTTP status \(reply.status): \(String(buffer: body))")
      }
      finish(.success(body))
    } catch {
      finish(.failure(error))
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish(.failure(BenchmarkError("The server closed the connection during a request.")))
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

/// The parts of a response head that determine where the response ends.
private struct ReplyHead {
  var status: Int
  var headBytes: Int
  var bodyBytes: Int

  /// Parses a head; nil until it is complete.
  init?(_ input: ByteBuffer) throws {
    let view = input.readableBytesView
    var lineStart = view.startIndex
    var status: Int?
    var bodyBytes: Int?
    while let lineEnd = view[lineStart...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = view[lineStart..<lineEnd]
      lineStart = lineEnd + 1
      if status == nil {
        status = Int(String(decoding: line.dropFirst(9).prefix(3), as: UTF8.self))
        guard status != nil else { throw BenchmarkError("The reply is not HTTP.") }
      } else if line.count <= 1 {
        guard let status, let bodyBytes else {
          throw BenchmarkError("The reply has no Content-Length.")
        }
        self.status = status
        self.headBytes = lineStart - view.startIndex
        self.bodyBytes = bodyBytes
        return
      } else if let value = Self.contentLength(line) {
        bodyBytes = value
      }
    }
    return nil
  }

  private static let name = Array("content-length:".utf8)

  private static func contentLength(_ line: ByteBufferView) -> Int? {
    guard line.count > name.count, zip(line, name).allSatisfy({ $0 | 0x20 == $1 | 0x20 }) else {
      return nil
    }
    let digits = line.dropFirst(name.count).filter { (48...57).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }
}
