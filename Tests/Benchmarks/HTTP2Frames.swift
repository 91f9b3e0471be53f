import NIOCore

/// An HTTP/2 frame.
struct Frame {
  /// The frame types by their numbers.
  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate
    case continuation
  }

  struct Flags: OptionSet {
    var rawValue: UInt8

    /// END_STREAM, on DATA and HEADERS.
    static let end = Flags(rawValue: 1)
    /// ACK, on SETTINGS and PING.
    static let acknowledgement = Flags(rawValue: 1)
    static let endHeaders = Flags(rawValue: 4)
    static let padded = Flags(rawValue: 8)
    static let priority = Flags(rawValue: 32)
  }

  /// The type; nil for a type that the benchmarks ignore.
  var kind: Kind?
  var flags: Flags
  var stream: UInt32
  var payload: ByteBuffer

  mutating func removePadding() throws {
    guard flags.contains(.padded) else { return }
    guard let count = payload.readInteger(as: UInt8.self), count <= payload.readableBytes,
      let content = payload.readSlice(length: payload.readableBytes - Int(count))
    else { throw BenchmarkError("The server sent a frame with more padding than bytes.") }
    payload = content
  }
}

extension ByteBuffer {
  /// Appends the client's connection preface: no server push, and windows that never block.
  mutating func writePreface(windowBytes: Int) {
    writeString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    writeFrame(.settings, length: 12)
    writeInteger(2 as UInt16)
    writeInteger(0 as UInt32)
    writeInteger(4 as UInt16)
    writeInteger(UInt32(windowBytes))
    writeWindowUpdate(windowBytes - 65_535)
  }

  /// Appends headers in full, each to be added to HPACK's table.
  mutating func writeHeaders(_ headers: [(name: String, value: String)]) {
    for (name, value) in headers {
      writeInteger(0x40 as UInt8)
      for text in [name, value] {
        writeLength(text.utf8.count)
        writeString(text)
      }
    }
  }

  /// Appends an HPACK integer with a 7-bit prefix; what does not fit follows, lowest bits first.
  private mutating func writeLength(_ length: Int) {
    guard length >= 127 else { return _ = writeInteger(UInt8(length)) }
    writeInteger(127 as UInt8)
    var rest = length - 127
    while rest > 127 {
      writeInteger(UInt8(rest & 127) | 128)
      rest >>= 7
    }
    writeInteger(UInt8(rest))
  }

  mutating func writeFrame(
    _ kind: Frame.Kind,
    flags: Frame.Flags = [],
    stream: UInt32 = 0,
    length: Int
  ) {
    writeMultipleIntegers(
      UInt32(length) << 8 | UInt32(kind.rawValue),
      flags.rawValue,
      stream
    )
  }

  mutating func writeWindowUpdate(_ bytes: Int) {
    writeFrame(.windowUpdate, length: 4)
    writeInteger(UInt32(bytes))
  }

  /// Reads the next frame; nil until it is complete.
  mutating func readFrame() -> Frame? {
    guard let head = getInteger(at: readerIndex, as: UInt32.self),
      readableBytes >= 9 + Int(head >> 8)
    else { return nil }
    moveReaderIndex(forwardBy: 4)
    guard let (flags, stream) = readMultipleIntegers(as: (UInt8, UInt32).self),
      let payload = readSlice(length: Int(head >> 8))
    else { return nil }
    return Frame(
      kind: Frame.Kind(rawValue: UInt8(truncatingIfNeeded: head)),
      flags: Frame.Flags(rawValue: flags),
      stream: stream & 0x7fff_ffff,
      payload: payload
    )
  }
}
