import DequeModule
import HTTPSupport
import Logging
import NIOCore
import NIOHPACK
import StatusCodes

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

  /// The number of bytes passed to the socket at a time while a large reply is split into frames.
  private static let writeBytes = 64 * 1024
  /// The time that a client has to close the connection after the server has ended it.
  private static let lingerTime = TimeAmount.seconds(1)
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
  private let budget: TransferBudget?
  let logger: Logger
  /// Creates a new stream's call; nil if the stream was refused and a response sent.
  private let open: (HTTP2Stream, HTTP2RequestHead) -> (any HTTP2Call)?
  private(set) var context: ChannelHandlerContext?
  private(set) var phase = Phase.open

  private var reader: HTTP2FrameReader
  private var hpack: HPACKDecoder
  private var streams: [UInt32: HTTP2Stream] = [:]
  private var lastStream: UInt32 = 0
  private var receiveWindow: Int
  private var unreturned = 0
  private var sendWindow = HTTP2Size.windowDefault
  private var streamSendWindow = HTTP2Size.windowDefault
  /// The streams that could send if the connection could, in round-robin order.
  private var waiting: Deque<HTTP2Stream> = []
  private var heldBytes = 0

  private var output = ByteBuffer()
  private var isTableSizeSent = false
  private var isReading = false
  private var isFlushScheduled = false
  private var isReadWanted = false

  private var resets: HTTP2RateLimit
  private var controls: HTTP2RateLimit
  private var pings: HTTP2PingPolicy
  private var glitches: HTTP2RateLimit

  private var hasHeard = false
  private var idleSince = NIODeadline.now()
  private var keepAliveTimer: Scheduled<Void>?
  private var idleTimer: Scheduled<Void>?
  private var lingerTimer: Scheduled<Void>?

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

  private var isServing: Bool {
    switch phase {
    case .open, .announcing, .draining: true
    case .lingering, .closed: false
    }
  }

  // MARK: Frames

  private func receive(_ frame: HTTP2Frame) throws(HTTP2ConnectionError) {
    switch frame {
    case .data(let id, let bytes, let windowBytes, let end):
      try receiveData(id, bytes, windowBytes: windowBytes, end: end)
    case .headers(let id, let block, let end):
      try receiveHeaders(id, block, end: end)
    case .reset(let id):
      try checkOpened(id)
      guard resets.admits(at: .now()) else { throw Self.flood("resets") }
      if let stream = streams[id] { close(stream) }
    case .windowUpdate(let id, let increment):
      try receiveWindowUpdate(id, increment)
    case .settings(let settings):
      try countControl()
      try apply(settings)
      output.writeSettingsAcknowledgement()
    case .ping(let bytes):
      try countControl()
      guard pings.admits(at: .now()) else {
        throw HTTP2ConnectionError(.enhanceYourCalm, "too_many_pings")
      }
      output.writePing(bytes, acknowledgement: true)
    case .pingAcknowledged(let bytes):
      try countControl()
      if case .announcing(bytes) = phase { nameLastStream() }
    case .settingsAcknowledged, .goAway, .ignored:
      try countControl()
    }
  }

  private func receiveHeaders(
    _ id: UInt32,
    _ block: ByteBuffer,
    end: Bool
  ) throws(HTTP2ConnectionError) {
    // Decoded even for a refused or ended stream, because the HPACK table belongs to the
    // connection.
    let headers = try decode(block)
    if let stream = streams[id] {
      guard !stream.hasClientEnded else {
        try countGlitch()
        return reset(stream, .streamClosed)
      }
      guard end, HTTP2RequestHead.areTrailers(headers) else {
        try countGlitch()
        return reset(stream, .protocolError)
      }
      return receivedEnd(stream)
    }
    guard !id.isMultiple(of: 2) else {
      throw HTTP2ConnectionError(.protocolError, "A client's streams have odd numbers.")
    }
    guard id > lastStream else { return try countGlitch() }
    // GOAWAY informs the client that this stream was not processed.
    if case .draining = phase { return try countGlitch() }
    lastStream = id
    guard streams.count < configuration.streamsMax, runningCalls < configuration.runningCallsMax
    else {
      try countGlitch()
      return output.writeReset(stream: id, code: .refusedStream)
    }
    let head: HTTP2RequestHead
    do {
      head = try HTTP2RequestHead(headers)
    } catch {
      try countGlitch()
      return output.writeReset(stream: id, code: .protocolError)
    }
    let stream = HTTP2Stream(
      id: id,
      connection: self,
      receiveWindow: configuration.streamWindowBytes,
      sendWindow: streamSendWindow
    )
    streams[id] = stream
    stream.hasClientEnded = end
    stream.call = open(stream, head)
    if end { stream.call?.receivedEnd() }
  }

  private func decode(_ block: ByteBuffer) throws(HTTP2ConnectionError) -> HPACKHeaders {
    var block = block
    do {
      return try hpack.decodeHeaders(from: &block)
    } catch is NIOHPACKErrors.MaxHeaderListSizeViolation {
      throw HTTP2ConnectionError(.enhanceYourCalm, "A list of header fields is too long.")
    } catch {
      throw HTTP2ConnectionError(.compressionError, "A header block cannot be decoded.")
    }
  }

  private func receiveData(
    _ id: UInt32,
    _ bytes: ByteBuffer,
    windowBytes: Int,
    end: Bool
  ) throws(HTTP2ConnectionError) {
    try checkOpened(id)
    receiveWindow -= windowBytes
    guard receiveWindow >= 0 else {
      throw HTTP2ConnectionError(.flowControlError, "The connection's window was overrun.")
    }
    // Returned at once because a stalled call must not stall others; `heldBytesMax` is checked
    // below.
    returnConnectionWindow(windowBytes)
    guard let stream = streams[id] else { return try countGlitch() }
    guard !stream.hasClientEnded else {
      try countGlitch()
      return reset(stream, .streamClosed)
    }
    stream.receiveWindow -= windowBytes
    guard stream.receiveWindow >= 0 else {
      try countGlitch()
      return reset(stream, .flowControlError)
    }
    stream.unreturned += windowBytes
    if bytes.readableBytes == 0 && !end { try countGlitch() }
    if bytes.readableBytes > 0 {
      stream.call?.received(bytes)
      countHeld(stream)
      if heldBytes > configuration.heldBytesMax { stream.call?.refuseForSize(Self.tooManyHeld) }
      holdRequest(stream, moved: bytes.readableBytes)
    }
    if end, !stream.isClosed { receivedEnd(stream) } else { returnWindow(stream) }
  }

  private func receivedEnd(_ stream: HTTP2Stream) {
    stream.hasClientEnded = true
    stream.requestHold?.clientIsDone()
    stream.call?.receivedEnd()
    closeIfOver(stream)
  }

  private func receiveWindowUpdate(
    _ id: UInt32,
    _ increment: Int
  ) throws(HTTP2ConnectionError) {
    if id == 0 {
      guard increment > 0 else {
        throw HTTP2ConnectionError(.protocolError, "A window was enlarged by nothing.")
      }
      sendWindow += increment
      guard sendWindow <= HTTP2Size.windowMax else { throw Self.windowOverflow }
      return sendWaiting()
    }
    try checkOpened(id)
    guard let stream = streams[id] else { return }
    guard increment > 0 else {
      try countGlitch()
      return reset(stream, .protocolError)
    }
    stream.sendWindow += increment
    guard stream.sendWindow <= HTTP2Size.windowMax else {
      try countGlitch()
      return reset(stream, .flowControlError)
    }
    resume(stream)
  }

  private func apply(_ settings: [HTTP2Setting]) throws(HTTP2ConnectionError) {
    for setting in settings {
      switch setting.id {
      case HTTP2Setting.initialWindowSize:
        guard setting.value <= HTTP2Size.windowMax else { throw Self.windowOverflow }
        try changeStreamWindows(to: Int(setting.value))
      case HTTP2Setting.enablePush:
        guard setting.value <= 1 else { throw Self.badSetting }
      case HTTP2Setting.maxFrameSize:
        // The value is only validated: the server never sends frames beyond the default limit.
        guard (16_384...16_777_215).contains(setting.value) else { throw Self.badSetting }
      default: break
      }
    }
  }

  private func changeStreamWindows(to window: Int) throws(HTTP2ConnectionError) {
    let change = window - streamSendWindow
    streamSendWindow = window
    for stream in streams.values {
      stream.sendWindow += change
      guard stream.sendWindow <= HTTP2Size.windowMax else { throw Self.windowOverflow }
    }
    guard change > 0 else { return }
    for stream in Array(streams.values) { resume(stream) }
  }

  /// Throws for a frame on a stream that the client has not opened.
  private func checkOpened(_ id: UInt32) throws(HTTP2ConnectionError) {
    guard id <= lastStream || isIgnored(id), !id.isMultiple(of: 2) else {
      throw HTTP2ConnectionError(.protocolError, "A frame belongs to a stream that is not open.")
    }
  }

  /// Returns true if a stream was opened after GOAWAY had named the last one.
  private func isIgnored(_ id: UInt32) -> Bool {
    if case .draining = phase { id > lastStream } else { false }
  }

  private func countControl() throws(HTTP2ConnectionError) {
    guard controls.admits(at: .now()) else { throw Self.flood("control frames") }
  }

  private func countGlitch() throws(HTTP2ConnectionError) {
    guard glitches.admits(at: .now()) else { throw Self.flood("invalid frames") }
  }

  private static func flood(_ what: String) -> HTTP2ConnectionError {
    HTTP2ConnectionError(.enhanceYourCalm, "There are too many \(what).")
  }

  private static let windowOverflow = HTTP2ConnectionError(
    .flowControlError,
    "A window exceeds 2147483647 bytes."
  )
  private static let badSetting = HTTP2ConnectionError(
    .protocolError,
    "A setting's value is not one."
  )

  // MARK: Receive windows

  private func returnConnectionWindow(_ bytes: Int) {
    unreturned += bytes
    guard unreturned >= configuration.connectionWindowBytes / 2 else { return }
    output.writeWindowUpdate(stream: 0, increment: unreturned)
    receiveWindow += unreturned
    unreturned = 0
  }

  /// Lets the client send more on a stream if the call accepts more; in few large steps.
  func returnWindow(_ stream: HTTP2Stream) {
    countHeld(stream)
    guard !stream.isClosed, !stream.hasClientEnded, let call = stream.call, call.wantsMore,
      stream.unreturned >= configuration.streamWindowBytes / 2
    else { return }
    output.writeWindowUpdate(stream: stream.id, increment: stream.unreturned)
    stream.receiveWindow += stream.unreturned
    stream.unreturned = 0
    pings.replied()
    scheduleFlush()
  }

  private func countHeld(_ stream: HTTP2Stream) {
    let held = stream.isClosed ? 0 : stream.call?.heldBytes ?? 0
    heldBytes += held - stream.countedBytes
    stream.countedBytes = held
  }

  // MARK: Memory

  /// Reserves memory for an incoming request and ends its call if the budget is full.
  ///
  /// The memory stays reserved until the call ends, because a handler then has the request.
  private func holdRequest(_ stream: HTTP2Stream, moved bytes: Int) {
    guard let budget, !stream.isClosed, let call = stream.call else { return }
    if stream.requestHold == nil, call.heldBytes > HTTP2Stream.uncountedBytesMax {
      stream.requestHold = makeHold(budget, stream.id) { _, stream in
        stream.call?.refuseForSize(Self.stalled)
      }
    }
    guard let hold = stream.requestHold else { return }
    hold.moved(bytes)
    guard !hold.set(call.heldBytes), !hold.isEnded else { return }
    call.refuseForSize(StatusError(budget.error.statusCode, budget.error.statusMessage))
  }

  /// Reserves memory for replies that the client has not read.
  ///
  /// Resets the stream if the budget is full.
  private func holdReplies(_ stream: HTTP2Stream, moved bytes: Int) {
    guard let budget, !stream.isClosed else { return }
    guard stream.queuedBytes > HTTP2Stream.uncountedBytesMax else {
      stream.replyHold = nil
      return
    }
    let hold =
      stream.replyHold
      ?? makeHold(budget, stream.id) { connection, stream in
        connection.reset(stream, .enhanceYourCalm)
      }
    stream.replyHold = hold
    hold.moved(bytes)
    if !hold.set(stream.queuedBytes), !hold.isEnded { reset(stream, .enhanceYourCalm) }
  }

  private func makeHold(
    _ budget: TransferBudget,
    _ id: UInt32,
    _ onEnd: @escaping @Sendable (HTTP2Connection, HTTP2Stream) -> Void
  ) -> TransferHold {
    let eventLoop = context?.eventLoop
    return TransferHold(budget) { [weak self] in
      eventLoop?.execute { [weak self] in
        guard let self, let stream = self.streams[id] else { return }
        onEnd(self, stream)
      }
    }
  }

  private static let tooManyHeld = StatusError(
    .resourceExhausted,
    "The calls of this connection hold too many bytes."
  )
  private static let stalled = StatusError(
    .unavailable,
    "The request stopped half-way, and its memory was needed for others."
  )

  // MARK: Sending

  /// Writes an encoded header block.
  func writeHeaders(_ stream: HTTP2Stream, _ block: ByteBuffer, end: Bool) {
    var block = block
    if !isTableSizeSent {
      // The blocks sent here use no dynamic table. One table size update of 0 stays valid whatever
      // size the client allows later.
      var prefixed = ByteBuffer(bytes: [0x20])
      prefixed.writeImmutableBuffer(block)
      block = prefixed
      isTableSizeSent = true
    }
    output.writeHeaders(stream: stream.id, block: block, end: end)
    pings.replied()
    if end { stream.isEndSent = true }
  }

  /// Sends the queued data of a stream, as far as the windows and the socket allow.
  func send(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    var sent = false
    let queuedBytes = stream.queuedBytes
    while stream.queuedBytes > 0, stream.sendWindow > 0 {
      // Making room may let other streams send, and they use the same window.
      guard hasRoom, sendWindow > 0 else {
        if !stream.isWaiting {
          stream.isWaiting = true
          waiting.append(stream)
        }
        break
      }
      let bytesMax = min(HTTP2Size.frameMax, stream.sendWindow, sendWindow)
      guard let bytes = stream.takeQueued(bytesMax) else { break }
      stream.sendWindow -= bytes.readableBytes
      sendWindow -= bytes.readableBytes
      output.writeData(stream: stream.id, bytes: bytes)
      sent = true
    }
    if sent { pings.replied() }
    if stream.queuedBytes == 0, let end = stream.end, !stream.isEndSent {
      switch end {
      case .trailers(let block): writeHeaders(stream, block, end: true)
      case .data:
        output.writeFrameHeader(
          length: 0,
          type: HTTP2FrameType.data,
          flags: HTTP2Flag.endStream,
          stream: stream.id
        )
        stream.isEndSent = true
      }
    }
    if stream.queuedBytes > 0 || stream.replyHold != nil {
      holdReplies(stream, moved: queuedBytes - stream.queuedBytes)
    }
    closeIfOver(stream)
    scheduleFlush()
  }

  /// Sends more once the client or the socket has room, and asks the call for more.
  private func resume(_ stream: HTTP2Stream) {
    send(stream)
    if !stream.isOver, !stream.isFull { stream.call?.hasRoom() }
  }

  /// True if the socket accepts more; flushes first if a piece of a large reply is complete.
  private var hasRoom: Bool {
    if output.readableBytes >= Self.writeBytes { flush() }
    return context?.channel.isWritable ?? false
  }

  private func sendWaiting() {
    // A stream that has to wait again goes last, so that a large reply does not hold others back.
    while sendWindow > 0, hasRoom, let stream = waiting.popFirst() {
      stream.isWaiting = false
      resume(stream)
    }
  }

  /// Schedules a flush of the written bytes at the end of this pass of the event loop.
  private func scheduleFlush() {
    guard !isReading, !isFlushScheduled, let context else { return }
    isFlushScheduled = true
    context.eventLoop.execute {
      self.isFlushScheduled = false
      self.flush()
    }
  }

  private func flush() {
    guard output.readableBytes > 0, let context else { return }
    let bytes = output
    output = ByteBuffer()
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  // MARK: Closing streams

  /// Resets a stream immediately.
  func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
    guard !stream.isClosed else { return }
    output.writeReset(stream: stream.id, code: code)
    close(stream)
    scheduleFlush()
  }

  private func closeIfOver(_ stream: HTTP2Stream) {
    guard stream.isEndSent, !stream.isClosed else { return }
    if !stream.hasClientEnded {
      // The response does not need the rest of the request, so the client may stop sending it.
      output.writeReset(stream: stream.id, code: .noError)
    }
    close(stream)
  }

  private func close(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    stream.isClosed = true
    streams[stream.id] = nil
    if stream.isWaiting { waiting.removeAll { $0 === stream } }
    heldBytes -= stream.countedBytes
    stream.drop()
    stream.requestHold = nil
    stream.replyHold = nil
    let call = stream.call
    stream.call = nil
    call?.closed()
    guard streams.isEmpty else { return }
    idleSince = .now()
    if case .draining = phase { linger() }
  }

  // MARK: Closing the connection

  /// Asks the client to open no more streams, lets the open streams end, and then closes.
  ///
  /// This takes two steps, so that a stream that is already on its way is still processed. A client
  /// that does not acknowledge the first step gets the second one after `lingerTime`.
  private func drain() {
    guard case .open = phase else { return }
    let ping = UInt64.random(in: .min ... .max)
    phase = .announcing(ping: ping)
    output.writeGoAway(lastStream: UInt32(HTTP2Size.windowMax), code: .noError, reason: "")
    output.writePing(ping, acknowledgement: false)
    scheduleFlush()
    lingerTimer = context?.eventLoop.scheduleTask(in: Self.lingerTime) {
      if case .announcing = self.phase { self.nameLastStream() }
    }
  }

  private func nameLastStream() {
    lingerTimer?.cancel()
    phase = .draining
    output.writeGoAway(lastStream: lastStream, code: .noError, reason: "")
    if streams.isEmpty { linger() } else { scheduleFlush() }
  }

  private func fail(_ error: HTTP2ConnectionError) {
    logger.debug(
      "An HTTP/2 connection was ended",
      metadata: ["http2.code": "\(error.code)", "http2.reason": "\(error.reason)"]
    )
    output.writeGoAway(lastStream: lastStream, code: error.code, reason: error.reason)
    linger()
  }

  /// Closes the sending side and waits briefly for the client to close its own.
  ///
  /// If both sides were closed at once, the system would drop output that the client has not read
  /// yet.
  private func linger() {
    guard let context, isServing else { return }
    flush()
    phase = .lingering
    closeStreams()
    context.close(mode: .output, promise: nil)
    lingerTimer = context.eventLoop.scheduleTask(in: Self.lingerTime) {
      self.context?.close(promise: nil)
    }
  }

  private func end() {
    phase = .closed
    for timer in [keepAliveTimer, idleTimer, lingerTimer] { timer?.cancel() }
    closeStreams()
  }

  private func closeStreams() {
    for stream in Array(streams.values) { close(stream) }
    waiting = []
  }

  // MARK: Keep-alive

  private func checkAliveLater() {
    guard isServing else { return }
    hasHeard = false
    keepAliveTimer = context?.eventLoop.scheduleTask(
      in: TimeAmount(configuration.keepAliveInterval)
    ) {
      self.checkAlive()
    }
  }

  private func checkAlive() {
    guard isServing, !hasHeard else { return checkAliveLater() }
    output.writePing(0, acknowledgement: false)
    flush()
    keepAliveTimer = context?.eventLoop.scheduleTask(
      in: TimeAmount(configuration.keepAliveTimeMax)
    ) {
      guard !self.hasHeard else { return self.checkAliveLater() }
      self.logger.debug("A client gave no sign of life; its connection is closed")
      self.context?.close(promise: nil)
    }
  }

  private func checkIdleLater(in time: TimeAmount) {
    guard isServing else { return }
    idleTimer = context?.eventLoop.scheduleTask(in: time) { self.checkIdle() }
  }

  private func checkIdle() {
    let idleTimeMax = TimeAmount(configuration.idleTimeMax)
    let idle = streams.isEmpty ? NIODeadline.now() - idleSince : .zero
    if idle >= idleTimeMax { return drain() }
    checkIdleLater(in: idleTimeMax - idle)
  }
}
