import DatabaseTree
import HTTPSupport
import Identifiers
import JSONText
import Logging
import NIOCore
import NIOWebSocket

/// A WebSocket of a client of the Realtime Database.
///
/// Everything happens on the socket's event loop, but for the parsing of long messages.
final class DatabaseSocket: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// The maximum size of a frame: that of the longest piece, whose characters have three bytes.
  static let frameBytesMax = 64 << 10
  /// The size up to which a message is parsed on the event loop, which others share.
  private static let quickBytesMax = 32 << 10
  /// The number of bytes that may wait for the client when another message comes.
  ///
  /// A client that is further behind is disconnected. It connects again, and listens again.
  private static let waitingBytesMax = 16 << 20
  /// The number of bytes below which memory is not counted.
  private static let heldBytesMin = 64 << 10
  /// The time after which a silent client counts as gone; clients send something every 45 s.
  private static let silenceMax = Duration.seconds(65)

  private let service: RealtimeDatabaseService
  private let opening: Opening
  private var context: ChannelHandlerContext?
  private var outlet: SocketOutlet?
  private var session: ClientSession?
  /// The session of long polling that goes on here.
  private var upgraded: LongPollSession?
  /// True from the client's last message before its session has moved here.
  private var isTakingOver = false
  private var assembly = MessageAssembly()
  private var silence = Silence(silenceMax)
  private var hold: TransferHold?
  /// The number of bytes that the system has not taken yet.
  private var waitingBytes = 0
  /// The size of the largest message among them.
  private var largestBytes = 0
  /// The messages that arrived while a long one is parsed.
  private var messages: [[UInt8]] = []
  private var isParsing = false
  private var isReadHeld = false

  /// What the handshake says about the connection.
  struct Opening {
    var instance: DatabaseInstance
    /// The host and port that the client can reach.
    var host: String
    /// The session of long polling that the client wants to continue here.
    var upgradedSession: String?
  }

  init(_ service: RealtimeDatabaseService, _ opening: Opening) {
    self.service = service
    self.opening = opening
  }

  // MARK: - Life cycle

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    let outlet = SocketOutlet(self, context.channel)
    self.outlet = outlet
    service.clients.enter(outlet)
    if let budget = service.budget {
      let channel = context.channel
      hold = TransferHold(budget, isForResults: true) { channel.close(promise: nil) }
    }
    if let id = opening.upgradedSession {
      upgraded = service.polls.session(id, of: opening.instance.name)
      return outlet.send(upgraded == nil ? .control("r", jsonQuoted(opening.host)) : .control("a"))
    }
    session = service.session(opening.instance, outlet: outlet)
    outlet.send(
      .hello(atMilliseconds: service.now, host: opening.host, session: RandomID.make(length: 20))
    )
  }

  func handlerRemoved(context: ChannelHandlerContext) { forget() }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    context.fireChannelInactive()
  }

  /// Ends the session, whatever ended the connection.
  private func forget() {
    context = nil
    if let outlet { service.clients.leave(outlet) }
    outlet?.close()
    outlet = nil
    session?.close()
    session = nil
    upgraded = nil
    hold = nil
    messages = []
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    // A socket cannot be closed by half, and at a stop clients connect again.
    case ChannelEvent.inputClosed, is ChannelShouldQuiesceEvent: context.close(promise: nil)
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    service.logger.debug("A socket failed", metadata: ["error": "\(error)"])
    close(.protocolError)
  }

  /// Closes the socket, with the reason for the client.
  private func close(_ code: WebSocketErrorCode) {
    guard let context else { return }
    var data = context.channel.allocator.buffer(capacity: 2)
    data.write(webSocketErrorCode: code)
    let frame = WebSocketFrame(fin: true, opcode: .connectionClose, data: data)
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(frame)).whenComplete { _ in channel.close(promise: nil) }
  }

  // MARK: - Receiving

  func read(context: ChannelHandlerContext) {
    if wantsMore { context.read() } else { isReadHeld = true }
  }

  /// False while the client has to wait for the responses to what it has sent.
  private var wantsMore: Bool {
    guard !isParsing, !isTakingOver, context?.channel.isWritable != false else { return false }
    return session.map { !$0.isFull } ?? true
  }

  func goOnReading() {
    guard let context, isReadHeld, wantsMore else { return }
    isReadHeld = false
    silence.end()
    context.read()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    goOnReading()
    context.fireChannelWritabilityChanged()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    silence.end()
    let frame = unwrapInboundIn(data)
    switch frame.opcode {
    case .text: take(frame.unmaskedData)
    case .ping:
      let pong = WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)
      context.writeAndFlush(wrapOutboundOut(pong), promise: nil)
    case .pong: break
    case .connectionClose:
      let reply = WebSocketFrame(fin: true, opcode: .connectionClose, data: frame.unmaskedData)
      let channel = context.channel
      context.writeAndFlush(wrapOutboundOut(reply)).whenComplete { _ in channel.close(promise: nil)
      }
    default: close(.unacceptableData)
    }
  }

  private func take(_ text: ByteBuffer) {
    switch assembly.add(text.readableBytesView) {
    case .incomplete: countMemory(moved: text.readableBytes)
    case .message(let message):
      countMemory(moved: text.readableBytes)
      messages.append(message)
      handleMessages()
    case .tooLong(let beginning):
      if session?.refuse(beginning: beginning) != true { close(.messageTooLarge) }
    case .malformed: close(.messageTooLarge)
    }
  }

  private func handleMessages() {
    var handled = 0
    while !isParsing, !isTakingOver, handled < messages.count {
      let message = messages[handled]
      handled += 1
      guard let session else {
        upgrade(message)
        continue
      }
      guard message.count > Self.quickBytesMax else {
        session.receive(message)
        continue
      }
      isParsing = true
      let outlet = outlet
      // The socket owns the task, which ends when the message is parsed.
      Task {
        session.receive(message)
        outlet?.execute { $0.parsed() }
      }
    }
    messages.removeFirst(min(handled, messages.count))
  }

  private func parsed() {
    isParsing = false
    handleMessages()
    goOnReading()
  }

  /// Answers a client that tries the socket, until its session of long polling moves here.
  private func upgrade(_ text: [UInt8]) {
    guard let outlet, case .control(let type)? = ClientMessage(text)?.content else { return }
    switch type {
    case "p": outlet.send(.control("o"))
    case "a":
      isTakingOver = upgraded != nil
      upgraded?.goOn(
        LongPollSession.Successor(outlet: outlet) { session in
          outlet.execute { $0.take(session) }
        }
      )
    default: break
    }
  }

  private func take(_ session: ClientSession) {
    guard context != nil else { return session.close() }
    self.session = session
    upgraded = nil
    isTakingOver = false
    handleMessages()
    goOnReading()
  }

  // MARK: - Sending

  func write(_ frames: [ByteBuffer]) {
    guard let context else { return }
    let bytes = frames.reduce(0) { $0 + $1.readableBytes }
    // One message may be larger than the limit, or no client could ever read a large value.
    guard waitingBytes - largestBytes <= Self.waitingBytesMax,
      frames.count <= MessageAssembly.piecesMax + 1
    else {
      return context.close(promise: nil)
    }
    waitingBytes += bytes
    largestBytes = max(largestBytes, bytes)
    countMemory()
    let socket = NIOLoopBound(self, eventLoop: context.eventLoop)
    for data in frames {
      let frame = WebSocketFrame(fin: true, opcode: .text, data: data)
      context.write(wrapOutboundOut(frame)).whenComplete { _ in
        socket.value.wrote(data.readableBytes)
      }
    }
    context.flush()
  }

  /// Counts what the system has taken, which shows that the client still reads.
  private func wrote(_ bytes: Int) {
    silence.end()
    waitingBytes -= bytes
    if waitingBytes == 0 { largestBytes = 0 }
    countMemory(moved: bytes)
  }

  /// Counts the memory that waits for the client; closes the socket if there is too little.
  private func countMemory(moved: Int = 0) {
    guard let hold else { return }
    let bytes = waitingBytes + assembly.bytes.count
    hold.moved(moved)
    guard hold.set(bytes > Self.heldBytesMin ? bytes : 0) else {
      context?.close(promise: nil)
      return
    }
  }

  // MARK: - Time

  func tick(atMilliseconds now: Int64) {
    // A client that waits for the server cannot be heard.
    if isReadHeld, context?.channel.isWritable == true { silence.end() }
    if silence.tick() { context?.close(promise: nil) }
    session?.tick(atMilliseconds: now)
  }
}
