import HTTPSupport
import NIOCore
import NIOHPACK

/// The frames that the client sends.
extension HTTP2Connection {
  func receive(_ frame: HTTP2Frame) throws(HTTP2ConnectionError) {
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
      try receiveSettings(settings)
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

  private func receiveSettings(_ settings: [HTTP2Setting]) throws(HTTP2ConnectionError) {
    try countControl()
    let windowBefore = streamSendWindow
    try apply(settings)
    output.writeSettingsAcknowledgement()
    // After the acknowledgment, because a client counts by its earlier window until it reads that.
    guard streamSendWindow > windowBefore else { return }
    for stream in Array(streams.values) { resume(stream) }
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
}
