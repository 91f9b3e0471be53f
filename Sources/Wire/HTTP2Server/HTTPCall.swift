package import HTTPMessages
package import HTTPSupport
import HTTPTypes
package import NIOCore
import NIOHPACK
import StatusCodes

/// A function that handles a request other than gRPC and returns a response even for errors.
///
/// It runs in the stream's own task, which is cancelled when the stream ends.
package typealias HTTP2Responder = @Sendable (Request, any Channel) async -> Response

/// A plain HTTP request on a stream.
///
/// It is `@unchecked Sendable` because all properties are accessed on the connection's event loop
/// only. The task holds a reference to it only to return to the event loop.
final class HTTPCall: HTTP2Call, @unchecked Sendable {
  private let server: GRPCRouter
  private let stream: HTTP2Stream
  private var task: Task<Void, Never>?
  private var writer: GRPCStreamWriter?
  private let body: InboundQueue<ByteBuffer>
  /// A reference that keeps the call alive for its queue; cleared when the stream closes.
  ///
  /// Clearing it breaks the reference cycle.
  private let own: NIOLoopBoundBox<HTTPCall?>
  private var isPaused = false

  /// Creates the call and starts the responder's task.
  init(
    _ head: HTTP2RequestHead,
    stream: HTTP2Stream,
    server: GRPCRouter,
    responder: @escaping HTTP2Responder
  ) {
    self.server = server
    self.stream = stream
    let loop = server.loop
    let own = NIOLoopBoundBox<HTTPCall?>(nil, eventLoop: loop)
    body = InboundQueue {
      loop.execute { own.value?.resumeReading() }
    }
    let writer = GRPCStreamWriter(budget: server.budget) {
      loop.execute { own.value?.sendQueued() }
    }
    self.writer = writer
    self.own = own
    own.value = self
    run(head, writer, responder)
  }

  private func run(
    _ head: HTTP2RequestHead,
    _ writer: GRPCStreamWriter,
    _ responder: @escaping HTTP2Responder
  ) {
    let hold = server.budget.map { budget in
      TransferHold(budget) { [weak body] in body?.finish(.failure(BodyTooSlowError())) }
    }
    let request = Request(head: HTTPRequest(head), body: .stream(body.elements), hold: hold)
    let channel = server.channel
    let loop = server.loop
    stream.connection.runningCalls += 1
    // The call owns the task and cancels it when its stream ends.
    task = Task {
      // Holds the memory reserved for the body until the responder is done with it.
      defer { withExtendedLifetime(hold) {} }
      var response = await responder(request, channel)
      do {
        try writer.hold(response.heldBytes)
      } catch {
        response = .error(error)
      }
      let isBodiless = request.method == .head
      let head = ByteBuffer(response)
      loop.execute {
        self.stream.writeHead(head, end: isBodiless)
        // The first bytes of the body may take a long time to arrive.
        self.stream.flush()
      }
      var isWhole = true
      if !isBodiless {
        do {
          switch response.body {
          case .whole(let piece): if piece.readableBytes > 0 { try await writer.send(piece) }
          case .stream(let pieces): for try await piece in pieces { try await writer.send(piece) }
          case .produced(let produce): try await produce { try await writer.send($0) }
          }
        } catch {
          isWhole = false
        }
        // A hold of nothing cannot fail.
        try? writer.hold(0)
      }
      let complete = isWhole
      loop.execute { self.finish(isWhole: complete) }
    }
  }

  private func finish(isWhole: Bool) {
    stream.connection.runningCalls -= 1
    guard isWhole else { return stream.reset(.internalError) }
    for bytes in writer?.take() ?? [] { stream.write(bytes) }
    stream.end(.data)
    stream.flush()
  }

  var wantsMore: Bool { !isPaused }
  /// The number of bytes received while the reader is busy; the stream's window limits it.
  private(set) var heldBytes = 0

  func received(_ bytes: ByteBuffer) {
    if isPaused { heldBytes += bytes.readableBytes }
    if !body.yield(bytes, bytes: bytes.readableBytes) { isPaused = true }
  }

  func receivedEnd() {
    body.finish()
  }

  func hasRoom() {
    sendQueued()
  }

  func refuseForSize(_ error: StatusError) {
    stream.reset(.enhanceYourCalm)
  }

  func closed() {
    own.value = nil
    task?.cancel()
    task = nil
    writer?.close()
    writer = nil
    body.finish(.failure(CancellationError()))
  }

  private func resumeReading() {
    isPaused = false
    heldBytes = 0
    stream.resumeReading()
  }

  private func sendQueued() {
    guard let writer, !stream.isOver else { return }
    if !stream.isFull {
      for bytes in writer.take() { stream.write(bytes) }
      stream.flush()
    }
    writer.setWritable(!stream.isFull)
  }
}

extension HTTPRequest {
  /// Creates a request head from a stream's head, which has been validated.
  fileprivate init(_ head: HTTP2RequestHead) {
    self.init(
      method: Method(head.method) ?? .get,
      scheme: head.scheme,
      authority: head.authority ?? head.headers.first(name: "host"),
      path: head.path
    )
    for (name, value, _) in head.headers where !name.hasPrefix(":") {
      guard let name = HTTPField.Name(name) else { continue }
      headerFields.append(HTTPField(name: name, value: value))
    }
  }
}

extension ByteBuffer {
  /// The connection-specific header fields, which HTTP/2 does not allow.
  private static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  /// Creates the header block of a response's head.
  fileprivate init(_ response: Response) {
    self.init()
    writeStatusField(response.head.status.code)
    var length: Int?
    if case .whole(let body) = response.body { length = body.readableBytes }
    for field in response.head.headerFields {
      let name = field.name.canonicalName
      guard !Self.connectionFields.contains(name), length == nil || field.name != .contentLength
      else { continue }
      writeHeaderField(name, field.value)
    }
    if let length { writeHeaderField("content-length", String(length)) }
  }
}
