import NIOCore

/// A reader that splits a client's bytes into frames and checks each frame on its own.
struct HTTP2FrameReader {
  private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  /// A header block in several frames whose last frame has not arrived yet.
  private struct OpenBlock {
    var stream: UInt32
    var block: ByteBuffer
    var end: Bool
    var frames = 1
  }

  private struct Header {
    var length: Int
    var type: UInt8
    var flags: UInt8
    var stream: UInt32

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
  }

  private let blockBytesMax: Int
  private var buffer = ByteBuffer()
  private var isPrefaceRead = false
  private var isFirstFrame = true
  private var openBlock: OpenBlock?

  /// Creates a reader that accepts compressed header blocks of up to `blockBytesMax` bytes.
  init(blockBytesMax: Int) {
    self.blockBytesMax = blockBytesMax
  }

  /// Appends the next bytes of the connection.
  mutating func append(_ bytes: ByteBuffer) {
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.discardReadBytes()
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// Returns the next complete frame; nil if it is incomplete.
  ///
  /// A thrown error ends the connection.
  mutating func next() throws(HTTP2ConnectionError) -> HTTP2Frame? {
    if !isPrefaceRead {
      let length = Self.preface.utf8.count
      guard let text = buffer.getString(at: buffer.readerIndex, length: length) else { return nil }
      guard text == Self.preface else {
        throw HTTP2ConnectionError(.protocolError, "The connection preface is missing.")
      }
      buffer.moveReaderIndex(forwardBy: length)
      isPrefaceRead = true
    }
    while let (header, payload) = try nextRaw() {
      if let frame = try frame(header, payload) { return frame }
    }
    return nil
  }

  private mutating func nextRaw() throws(HTTP2ConnectionError) -> (Header, ByteBuffer)? {
    let start = buffer.readerIndex
    guard let word = buffer.getInteger(at: start, as: UInt32.self),
      let flags = buffer.getInteger(at: start + 4, as: UInt8.self),
      let stream = buffer.getInteger(at: start + 5, as: UInt32.self)
    else { return nil }
    let header = Header(
      length: Int(word >> 8),
      type: UInt8(truncatingIfNeeded: word),
      flags: flags,
      stream: stream & 0x7FFF_FFFF
    )
    guard header.length <= HTTP2Size.frameMax else {
      throw HTTP2ConnectionError(.frameSizeError, "A frame is longer than 16384 bytes.")
    }
    guard buffer.readableBytes >= HTTP2Size.frameHeader + header.length else { return nil }
    buffer.moveReaderIndex(forwardBy: HTTP2Size.frameHeader)
    guard let payload = buffer.readSlice(length: header.length) else { return nil }
    return (header, payload)
  }

  /// Returns the frame, or nil if it is part of an unfinished header block.
  private mutating func frame(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame? {
    if isFirstFrame {
      guard header.type == HTTP2FrameType.settings, !header.has(HTTP2Flag.acknowledgement) else {
        throw HTTP2ConnectionError(.protocolError, "The first frame is not SETTINGS.")
      }
      isFirstFrame = false
    }
    if openBlock != nil && header.type != HTTP2FrameType.continuation {
      throw HTTP2ConnectionError(.protocolError, "A header block was interrupted.")
    }
    switch header.type {
    case HTTP2FrameType.data: return try data(header, payload)
    case HTTP2FrameType.headers: return try headers(header, payload)
    case HTTP2FrameType.continuation: return try continuation(header, payload)
    case HTTP2FrameType.settings: return try settings(header, payload)
    case HTTP2FrameType.windowUpdate: return try windowUpdate(header, payload)
    case HTTP2FrameType.ping:
      try check(header, length: 8, onStream: false)
      let bytes = payload.getInteger(at: payload.readerIndex, as: UInt64.self) ?? 0
      return header.has(HTTP2Flag.acknowledgement) ? .pingAcknowledged(bytes) : .ping(bytes)
    case HTTP2FrameType.reset:
      try check(header, length: 4, onStream: true)
      return .reset(stream: header.stream)
    case HTTP2FrameType.priority:
      try check(header, length: 5, onStream: true)
      return .ignored
    case HTTP2FrameType.goAway:
      guard header.length >= 8 else { throw Self.wrongLength }
      guard header.stream == 0 else { throw Self.wrongStream }
      return .goAway
    case HTTP2FrameType.pushPromise:
      throw HTTP2ConnectionError(.protocolError, "A client cannot push.")
    default:
      return .ignored
    }
  }

  private func data(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame {
    guard header.stream != 0 else { throw Self.wrongStream }
    var bytes = payload
    try removePadding(header, &bytes)
    return .data(
      stream: header.stream,
      bytes: bytes,
      windowBytes: header.length,
      end: header.has(HTTP2Flag.endStream)
    )
  }

  private mutating func headers(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame? {
    guard header.stream != 0 else { throw Self.wrongStream }
    var block = payload
    try removePadding(header, &block)
    if header.has(HTTP2Flag.priority) {
      guard block.readableBytes >= 5 else { throw Self.wrongLength }
      block.moveReaderIndex(forwardBy: 5)
    }
    let end = header.has(HTTP2Flag.endStream)
    guard !header.has(HTTP2Flag.endHeaders) else {
      return .headers(stream: header.stream, block: block, end: end)
    }
    openBlock = OpenBlock(stream: header.stream, block: block, end: end)
    return nil
  }

  private mutating func continuation(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame? {
    guard var open = openBlock, open.stream == header.stream else {
      throw HTTP2ConnectionError(.protocolError, "A CONTINUATION continues nothing.")
    }
    open.block.writeImmutableBuffer(payload)
    open.frames += 1
    // Without this limit, a client could send short frames forever without filling the block.
    let framesMax = 2 + blockBytesMax / 1024
    guard open.block.readableBytes <= blockBytesMax, open.frames <= framesMax else {
      throw HTTP2ConnectionError(.enhanceYourCalm, "A header block is too long.")
    }
    guard header.has(HTTP2Flag.endHeaders) else {
      openBlock = open
      return nil
    }
    openBlock = nil
    return .headers(stream: open.stream, block: open.block, end: open.end)
  }

  private func settings(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame {
    guard header.stream == 0 else { throw Self.wrongStream }
    if header.has(HTTP2Flag.acknowledgement) {
      guard header.length == 0 else { throw Self.wrongLength }
      return .settingsAcknowledged
    }
    guard header.length.isMultiple(of: 6) else { throw Self.wrongLength }
    var rest = payload
    var settings: [HTTP2Setting] = []
    while let (id, value) = rest.readMultipleIntegers(as: (UInt16, UInt32).self) {
      settings.append(HTTP2Setting(id: id, value: value))
    }
    return .settings(settings)
  }

  private func windowUpdate(
    _ header: Header,
    _ payload: ByteBuffer
  ) throws(HTTP2ConnectionError) -> HTTP2Frame {
    guard header.length == 4 else { throw Self.wrongLength }
    let increment = payload.getInteger(at: payload.readerIndex, as: UInt32.self) ?? 0
    return .windowUpdate(stream: header.stream, increment: Int(increment & 0x7FFF_FFFF))
  }

  private func removePadding(
    _ header: Header,
    _ payload: inout ByteBuffer
  ) throws(HTTP2ConnectionError) {
    guard header.has(HTTP2Flag.padded) else { return }
    guard let padding = payload.readInteger(as: UInt8.self), Int(padding) <= payload.readableBytes
    else {
      throw HTTP2ConnectionError(.protocolError, "A frame is shorter than its padding.")
    }
    payload.moveWriterIndex(to: payload.writerIndex - Int(padding))
  }

  private func check(
    _ header: Header,
    length: Int,
    onStream: Bool
  ) throws(HTTP2ConnectionError) {
    guard header.length == length else { throw Self.wrongLength }
    guard (header.stream != 0) == onStream else { throw Self.wrongStream }
  }

  private static let wrongLength = HTTP2ConnectionError(
    .frameSizeError,
    "A frame's length does not fit its type."
  )
  private static let wrongStream = HTTP2ConnectionError(
    .protocolError,
    "A frame's stream does not fit its type."
  )
}
