import FirestoreProtos
import JSONText
import NIOCore
import NIOHTTP1
import NIOPosix
import SwiftProtobuf

/// A web page's Listen stream: a WebChannel with one target and an open back channel.
///
/// `@unchecked Sendable`: all properties are accessed only on the connection's event loop.
final class ChannelConnection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart
  typealias Reply = Google_Firestore_V1_ListenResponse

  private static let path = "/google.firestore.v1.Firestore/Listen/channel?VER=8&"

  private let authority: String
  private let database: String
  private let token: String
  private let request: String
  private let report: (Result<Reply, any Error>) -> Void
  private var context: ChannelHandlerContext?
  private var input = ByteBuffer()
  /// The channel's session ID, once it is open.
  private var session: String?

  private init(
    authority: String,
    database: String,
    token: String,
    request: String,
    report: @escaping (Result<Reply, any Error>) -> Void
  ) {
    self.authority = authority
    self.database = database
    self.token = token
    self.request = request
    self.report = report
  }

  /// Opens a channel with `request`, in JSON, as its first message.
  static func connect(
    to address: Address,
    database: String,
    token: String,
    on loop: any EventLoop,
    request: String,
    report: @escaping @Sendable (Result<Reply, any Error>) -> Void
  ) -> EventLoopFuture<ChannelConnection> {
    ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .connect(host: address.host, port: address.port)
      .flatMapThrowing { channel in
        let connection = ChannelConnection(
          authority: "\(address)",
          database: database,
          token: token,
          request: request,
          report: report
        )
        try channel.pipeline.syncOperations.addHTTPClientHandlers()
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
      }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    // The stream's headers travel in the form body, so that browsers send no preflight request.
    let headers =
      "Authorization:Bearer \(token)\r\ngoogle-cloud-resource-prefix:\(database)\r\n"
    let body =
      "headers=\(Self.escaped(headers))&count=1&ofs=0&req0___data__=\(Self.escaped(request))"
    send(.POST, "RID=1&CVER=22&t=1", body)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func close() {
    context?.close(promise: nil)
  }

  private func send(_ method: HTTPMethod, _ query: String, _ body: String) {
    guard let context else { return }
    var head = HTTPRequestHead(version: .http1_1, method: method, uri: Self.path + query)
    head.headers = ["host": authority, "content-length": "\(body.utf8.count)"]
    if method == .POST {
      head.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    }
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: body)))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    do {
      switch unwrapInboundIn(data) {
      case .head(let head):
        guard head.status == .ok else {
          throw BenchmarkError("A channel was answered with HTTP status \(head.status).")
        }
      case .body(let bytes):
        input.writeImmutableBuffer(bytes)
        while let chunk = readChunk() { try receive(chunk) }
      case .end:
        guard let session else { throw BenchmarkError("A channel was not opened.") }
        send(.GET, "SID=\(session)&RID=rpc&CI=0&AID=0&TYPE=xmlhttp&t=1", "")
      }
    } catch {
      report(.failure(error))
      context.close(promise: nil)
    }
  }

  /// Returns a complete chunk.
  ///
  /// A chunk is its length in characters, which are all single-byte here, a newline, and the text.
  private func readChunk() -> [UInt8]? {
    let view = input.readableBytesView
    guard let end = view.firstIndex(of: UInt8(ascii: "\n")),
      let length = Int(String(decoding: view[..<end], as: UTF8.self)),
      view.endIndex - end - 1 >= length
    else { return nil }
    input.moveReaderIndex(to: end + 1)
    return input.readBytes(length: length)
  }

  /// Processes a chunk: arrays that each hold a number and a list of messages.
  private func receive(_ chunk: [UInt8]) throws {
    for array in try jsonElements(of: chunk) ?? [] {
      let parts = try jsonElements(of: array) ?? []
      for message in try parts.last.flatMap({ try jsonElements(of: $0) }) ?? [] {
        if message.first == UInt8(ascii: "{") {
          report(.success(try Reply(jsonUTF8Bytes: message)))
        } else if session == nil, let list = parts.last, let list = try jsonElements(of: list),
          list.count > 1, list[0] == Array("\"c\"".utf8)
        {
          session = String(decoding: list[1].dropFirst().dropLast(), as: UTF8.self)
        }
      }
    }
  }

  private static func escaped(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF")
    return text.utf8.reduce(into: "") { result, byte in
      let scalar = Character(UnicodeScalar(byte))
      if scalar.isLetter || scalar.isNumber {
        result.append(scalar)
      } else {
        result += ["%", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
  }
}
