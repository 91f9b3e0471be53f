import DequeModule
import HTTPSupport
import Logging
import NIOCore
import NIOHPACK

/// The server side of one HTTP/2 connection (RFC 9113): frames, windows and streams.
///
/// One handler serves the whole connection, without a channel for each stream. A point read takes
/// microseconds, and a pipeline and promises for each stream would cost more than the read.
/// Everything written within one pass of the event loop is sent in one system call.
///
/// It is `@unchecked Sendable` because it is accessed on its event loop only. Tasks hold a
/// reference to it only to return to the event loop.
final class HTTP2Connection: ChannelDuplexHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The factor by which header fields must exceed the limit to end the connection.
  ///
  /// Below it, too many header fields refuse only the call.
  private static let listBytesFactor = 4

  enum Phase {
    case open
    /// A first GOAWAY accepts all streams until the client acknowledges `ping`.
    case announcing(ping: UInt64)
    /// A second GOAWAY has named the last stream that is processed.
    case draining
    /// The last bytes were sent; further bytes from the client are not read.
    case lingering
    case closed
  }

  let configuration: GRPCServer.Configuration
  /// The memory budget of all connections together; nil for no limit.
  let budget: TransferBudget?
  let logger: Logger
  /// Creates a new stream's call; nil if the stream was refused and a response sent.
  let open: (HTTP2Stream, HTTP2RequestHead) -> (any HTTP2Call)?
  private(set) var context: ChannelHandlerContext?
  var phase = Phase.open

  private var reader: HTTP2FrameReader
  var hpack: HPACKDecoder
  var streams: [UInt32: HTTP2Stream] = [:]
  var lastStream: UInt32 = 0
  var receiveWindow: Int
  var unreturned = 0
  var sendWindow = HTTP2Size.windowDefault
  var streamSendWindow = HTTP2Size.windowDefault
  /// The streams that could send if the connection could, in round-robin order.
  var waiting: Deque<HTTP2Stream> = []
  var heldBytes = 0

  var output = ByteBuffer()
  var isTableSizeSent = false
  var isReading = false
  var isFlushScheduled = false
  private var isReadWanted = false

  var resets: HTTP2RateLimit
  var controls: HTTP2RateLimit
  var pings: HTTP2PingPolicy
  var glitches: HTTP2RateLimit

  var hasHeard = false
  var idleSince = NIODeadline.now()
  var keepAliveTimer: Scheduled<Void>?
  var idleTimer: Scheduled<Void>?
  var lingerTimer: Scheduled<Void>?

  /// The number of running call tasks, including those of reset calls.
  ///
  /// A handler may ignore cancellation.
  var runningCalls = 0

  init(
    configuration: GRPCServer.Configuration,
    budget: TransferBudget? = nil,
    logger: Logger,
    open: @escaping (HTTP2Stream, HTTP2RequestHead) -> (any HTTP2Call)?
  ) {
    self.configuration = configuration
    self.budget = budget
    self.logger = logger
    self.open = open
    let window = TimeAmount(configuration.floodWindow)
    reader = HTTP2FrameReader(
      blockBytesMax: configuration.headerBytesMax * Self.listBytesFactor
    )
    hpack = HPACKDecoder(
      allocator: ByteBufferAllocator(),
      maxDynamicTableSize: HPACKDecoder.maxDynamicTableSize,
      maxHeaderListSize: configuration.headerBytesMax * Self.listBytesFactor
    )
    receiveWindow = configuration.connectionWindowBytes
    resets = HTTP2RateLimit(countMax: configuration.resetsMax, window: window)
    glitches = HTTP2RateLimit(countMax: configuration.glitchesMax, window: window)
    controls = HTTP2RateLimit(countMax: configuration.controlFramesMax, window: window)
    pings = HTTP2PingPolicy(intervalMin: TimeAmount(configuration.pingIntervalMin))
  }

  // MARK: Channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    output.writeSettings([
      HTTP2Setting(id: HTTP2Setting.maxConcurrentStreams, value: UInt32(configuration.streamsMax)),
      HTTP2Setting(
        id: HTTP2Setting.initialWindowSize,
        value: UInt32(configuration.streamWindowBytes)
      ),
      HTTP2Setting(id: HTTP2Setting.maxHeaderListSize, value: UInt32(configuration.headerBytesMax)),
    ])
    let ahead = configuration.connectionWindowBytes - HTTP2Size.windowDefault
    if ahead > 0 { output.writeWindowUpdate(stream: 0, increment: ahead) }
    flush()
    checkAliveLater()
    checkIdleLater(in: TimeAmount(configuration.idleTimeMax))
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    end()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("An HTTP/2 connection failed", metadata: ["error": "\(error)"])
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ChannelShouldQuiesceEvent: drain()
    // With half-closed connections enabled, this event is the only sign that a client has left.
    case ChannelEvent.inputClosed: context.close(promise: nil)
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    hasHeard = true
    isReading = true
    guard isServing else { return }
    reader.append(unwrapInboundIn(data))
    do {
      while isServing, let frame = try reader.next() { try receive(frame) }
    } catch {
      fail(error)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReading = false
    flush()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      sendWaiting()
      if isReadWanted {
        isReadWanted = false
        context.read()
      }
    }
    context.fireChannelWritabilityChanged()
  }

  /// Pauses reading while the client does not read responses, since each request adds to them.
  func read(context: ChannelHandlerContext) {
    if context.channel.isWritable { context.read() } else { isReadWanted = true }
  }

  var isServing: Bool {
    switch phase {
    case .open, .announcing, .draining: true
    case .lingering, .closed: false
    }
  }
}
