import NIOCore

extension ByteBuffer {
  /// Writes a frame's header; the payload must follow.
  mutating func writeFrameHeader(length: Int, type: UInt8, flags: UInt8 = 0, stream: UInt32) {
    writeMultipleIntegers(UInt32(length) << 8 | UInt32(type), flags, stream)
  }

  /// Writes an encoded header block, in as many frames as it needs.
  mutating func writeHeaders(stream: UInt32, block: ByteBuffer, end: Bool) {
    var rest = block
    var type = HTTP2FrameType.headers
    var flags = end ? HTTP2Flag.endStream : 0
    repeat {
      let length = min(rest.readableBytes, HTTP2Size.frameMax)
      if length == rest.readableBytes { flags |= HTTP2Flag.endHeaders }
      writeFrameHeader(length: length, type: type, flags: flags, stream: stream)
      if var part = rest.readSlice(length: length) { writeBuffer(&part) }
      type = HTTP2FrameType.continuation
      flags = 0
    } while rest.readableBytes > 0
  }

  /// Writes a DATA frame with a part of the response.
  mutating func writeData(stream: UInt32, bytes: ByteBuffer) {
    writeFrameHeader(length: bytes.readableBytes, type: HTTP2FrameType.data, stream: stream)
    writeImmutableBuffer(bytes)
  }

  /// Writes a frame that resets a stream.
  mutating func writeReset(stream: UInt32, code: HTTP2ErrorCode) {
    writeFrameHeader(length: 4, type: HTTP2FrameType.reset, stream: stream)
    writeInteger(code.rawValue)
  }

  /// Writes a frame that enlarges the client's send window; stream 0 is the connection.
  mutating func writeWindowUpdate(stream: UInt32, increment: Int) {
    writeFrameHeader(length: 4, type: HTTP2FrameType.windowUpdate, stream: stream)
    writeInteger(UInt32(increment))
  }

  mutating func writeSettings(_ settings: [HTTP2Setting]) {
    writeFrameHeader(length: settings.count * 6, type: HTTP2FrameType.settings, stream: 0)
    for setting in settings { writeMultipleIntegers(setting.id, setting.value) }
  }

  /// Writes the acknowledgement of the client's settings.
  mutating func writeSettingsAcknowledgement() {
    writeFrameHeader(
      length: 0,
      type: HTTP2FrameType.settings,
      flags: HTTP2Flag.acknowledgement,
      stream: 0
    )
  }

  /// Writes a PING frame or the acknowledgement of one.
  mutating func writePing(_ bytes: UInt64, acknowledgement: Bool) {
    let flags = acknowledgement ? HTTP2Flag.acknowledgement : 0
    writeFrameHeader(length: 8, type: HTTP2FrameType.ping, flags: flags, stream: 0)
    writeInteger(bytes)
  }

  /// Writes a frame that announces the last stream that will be processed.
  mutating func writeGoAway(lastStream: UInt32, code: HTTP2ErrorCode, reason: String) {
    writeFrameHeader(length: 8 + reason.utf8.count, type: HTTP2FrameType.goAway, stream: 0)
    writeMultipleIntegers(lastStream, code.rawValue)
    writeString(reason)
  }

  /// Writes a header field as a literal without indexing (RFC 7541, 6.2.2).
  ///
  /// The few fields that the server sends are short. An encoder without a table can ignore changes
  /// that the client makes to the table's size.
  mutating func writeHeaderField(_ name: String, _ value: String) {
    writeInteger(0 as UInt8)
    writeHPACKString(name)
    writeHPACKString(value)
  }

  /// Writes the pseudo-header of every response.
  mutating func writeStatusField(_ status: Int) {
    if status == 200 {
      writeInteger(0x88 as UInt8)
    } else {
      // Entry 8 of the static table is `:status`.
      writeInteger(0x08 as UInt8)
      writeHPACKString(String(status))
    }
  }

  private mutating func writeHPACKString(_ text: String) {
    var rest = text.utf8.count
    if rest < 127 {
      writeInteger(UInt8(rest))
    } else {
      writeInteger(127 as UInt8)
      rest -= 127
      while rest >= 128 {
        writeInteger(UInt8(rest & 127 | 128))
        rest >>= 7
      }
      writeInteger(UInt8(rest))
    }
    writeString(text)
  }
}
