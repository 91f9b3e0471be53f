import NIOCore

extension ByteBuffer {
  /// Writes a frame's head; its payload must follow.
  mutating func writeFrameHeader(length: Int, type: UInt8, flags: UInt8 = 0, stream: UInt32) {
    writeMultipleIntegers(UInt32(length) << 8 | UInt32(type), flags, stream)
  }

  /// Writes already encoded header fields, in as many frames as they need.
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

  /// Writes a part of a reply.
  mutating func writeData(stream: UInt32, bytes: ByteBuffer) {
    writeFrameHeader(length: bytes.readableBytes, type: HTTP2FrameType.data, stream: stream)
    writeImmutableBuffer(bytes)
  }

  /// Resets a stream, which ends a reply whose last bytes did not announce its end.
  mutating func writeReset(stream: UInt32, code: HTTP2ErrorCode) {
    writeFrameHeader(length: 4, type: HTTP2FrameType.reset, stream: stream)
    writeInteger(code.rawValue)
  }

  /// Lets the client send more; stream 0 is the connection.
  mutating func writeWindowUpdate(stream: UInt32, increment: Int) {
    writeFrameHeader(length: 4, type: HTTP2FrameType.windowUpdate, stream: stream)
    writeInteger(UInt32(increment))
  }

  /// Writes the server's settings.
  mutating func writeSettings(_ settings: [HTTP2Setting]) {
    writeFrameHeader(length: settings.count * 6, type: HTTP2FrameType.settings, stream: 0)
    for setting in settings { writeMultipleIntegers(setting.id, setting.value) }
  }

  /// Says that the client's settings apply from now on.
  mutating func writeSettingsAcknowledgement() {
    writeFrameHeader(
      length: 0,
      type: HTTP2FrameType.settings,
      flags: HTTP2Flag.acknowledgement,
      stream: 0
    )
  }

  /// Writes a sign of life, or asks for one.
  mutating func writePing(_ bytes: UInt64, acknowledgement: Bool) {
    let flags = acknowledgement ? HTTP2Flag.acknowledgement : 0
    writeFrameHeader(length: 8, type: HTTP2FrameType.ping, flags: flags, stream: 0)
    writeInteger(bytes)
  }

  /// Says which streams will still be answered.
  mutating func writeGoAway(lastStream: UInt32, code: HTTP2ErrorCode, reason: String) {
    writeFrameHeader(length: 8 + reason.utf8.count, type: HTTP2FrameType.goAway, stream: 0)
    writeMultipleIntegers(lastStream, code.rawValue)
    writeString(reason)
  }

  /// Writes a header field as a literal that no table remembers (RFC 7541, 6.2.2).
  ///
  /// The few fields sent are short, and an encoder without memory can ignore changes that the
  /// client makes to its table's size.
  mutating func writeHeaderField(_ name: String, _ value: String) {
    writeInteger(0 as UInt8)
    writeHPACKString(name)
    writeHPACKString(value)
  }

  /// The pseudo header of every response.
  mutating func writeStatusField(_ status: Int) {
    if status == 200 {
      writeInteger(0x88 as UInt8)
    } else {
      // Entry 8 of the table is `:status`.
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
