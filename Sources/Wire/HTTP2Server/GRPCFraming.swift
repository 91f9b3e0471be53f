import NIOCore
import RuntimeSupport
import SwiftProtobuf

/// Converts messages to framed bytes and back, without copying the bytes.
enum GRPCFraming {
  /// The size of a prefix: a flag byte, 1 for a compressed message, and four bytes of length.
  static let prefixBytes = 5

  /// Decodes a message; throws `INVALID_ARGUMENT` when the bytes are not one.
  static func message<M: Message>(_ bytes: ByteBuffer) throws -> M {
    do {
      return try M(serializedBytes: MessageBytes(received: bytes))
    } catch is BinaryDecodingError {
      throw StatusError.invalidArgument("The request is not a valid \(M.protoMessageName) message.")
    }
  }

  /// Encodes a message behind its prefix.
  static func frame(_ message: some Message) throws -> ByteBuffer {
    let bytes: MessageBytes = try message.serializedBytes()
    return bytes.framed
  }

  /// Puts the prefix before a message's bytes.
  static func frame(encoded message: [UInt8]) -> ByteBuffer {
    var frame = ByteBufferAllocator().buffer(capacity: prefixBytes + message.count)
    frame.writeMultipleIntegers(0 as UInt8, UInt32(message.count))
    frame.writeBytes(message)
    return frame
  }
}

/// How the messages of one call are written and read.
struct GRPCCodec: Sendable {
  /// The smallest message to compress; below it, compression costs more than it saves.
  private static let compressedBytesMin = 1024

  var limit: GRPCMessageLimit
  var compressesReplies = false

  /// Decodes a request; throws what ends the call.
  func request<M: Message>(_ message: GRPCMessage) throws -> M {
    try GRPCFraming.message(
      message.isCompressed ? try GZip.inflate(message.bytes, limit: limit) : message.bytes
    )
  }

  /// Encodes a reply behind its prefix.
  func frame(_ message: some Message) throws -> ByteBuffer {
    try compressed(GRPCFraming.frame(message))
  }

  /// Puts the prefix before a reply's bytes.
  func frame(encoded message: [UInt8]) throws -> ByteBuffer {
    try compressed(GRPCFraming.frame(encoded: message))
  }

  /// The frame of a reply, compressed if that is asked for and worth it.
  private func compressed(_ frame: ByteBuffer) throws -> ByteBuffer {
    guard compressesReplies, frame.readableBytes >= Self.compressedBytesMin else { return frame }
    let compressed = try GZip.deflate(frame.dropPrefix)
    var framed = ByteBuffer()
    framed.reserveCapacity(GRPCFraming.prefixBytes + compressed.readableBytes)
    framed.writeMultipleIntegers(1 as UInt8, UInt32(compressed.readableBytes))
    framed.writeImmutableBuffer(compressed)
    return framed
  }
}

extension ByteBuffer {
  fileprivate var dropPrefix: ByteBuffer {
    var rest = self
    rest.moveReaderIndex(forwardBy: GRPCFraming.prefixBytes)
    return rest
  }
}

/// The longest message, before and after decompression, and the status for a longer one.
struct GRPCMessageLimit: Sendable {
  var bytesMax: Int
  var code = StatusCode.resourceExhausted

  /// The error that ends a call whose message is longer.
  var error: StatusError {
    StatusError(code, "Request payload size exceeds the limit: \(bytesMax) bytes.")
  }
}

/// A message as received.
struct GRPCMessage: Sendable, Equatable {
  var bytes: ByteBuffer
  var isCompressed = false
}

/// The bytes of a message in a `ByteBuffer` whose prefix comes before them.
private struct MessageBytes: SwiftProtobufContiguousBytes {
  private(set) var framed: ByteBuffer
  private let offset: Int

  /// Room for a message of `count` bytes after a prefix that is already written.
  init(repeating byte: UInt8, count: Int) {
    framed = ByteBufferAllocator().buffer(capacity: GRPCFraming.prefixBytes + count)
    framed.writeInteger(0 as UInt8)
    framed.writeInteger(UInt32(count))
    framed.writeRepeatingByte(byte, count: count)
    offset = GRPCFraming.prefixBytes
  }

  init(_ sequence: some Sequence<UInt8>) {
    let bytes = ByteBuffer(bytes: sequence)
    self.init(repeating: 0, count: bytes.readableBytes)
    framed.setBuffer(bytes, at: framed.readerIndex + offset)
  }

  /// A message as received, without its prefix.
  init(received bytes: ByteBuffer) {
    framed = bytes
    offset = 0
  }

  var count: Int { framed.readableBytes - offset }

  func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try framed.withUnsafeReadableBytes { try body(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
  }

  mutating func withUnsafeMutableBytes<R>(
    _ body: (UnsafeMutableRawBufferPointer) throws -> R
  ) rethrows -> R {
    let offset = offset
    return try framed.withUnsafeMutableReadableBytes {
      try body(UnsafeMutableRawBufferPointer(rebasing: $0[offset...]))
    }
  }
}

/// Splits the bytes of a stream into messages, wherever the frames of HTTP/2 cut them.
struct GRPCMessageDecoder {
  private let limit: GRPCMessageLimit
  private let takesCompressed: Bool
  private var buffer = ByteBuffer()

  /// A decoder that refuses messages beyond `limit` before it has buffered them.
  init(limit: GRPCMessageLimit, takesCompressed: Bool) {
    self.limit = limit
    self.takesCompressed = takesCompressed
  }

  /// The size of the incomplete messages held.
  var heldBytes: Int { buffer.readableBytes }

  /// Takes the next bytes of the stream.
  mutating func append(_ bytes: ByteBuffer) {
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.discardReadBytes()
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// The next whole message, or nil while it is incomplete; throws what ends the call.
  mutating func next() throws(StatusError) -> GRPCMessage? {
    guard let flag = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return nil }
    guard flag == 0 || flag == 1 && takesCompressed else {
      throw flag == 1
        ? StatusError(.internal, "A message is compressed, but grpc-encoding names no compression.")
        : StatusError.invalidArgument("The request is not made of gRPC messages.")
    }
    guard let length = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt32.self) else {
      return nil
    }
    guard length <= limit.bytesMax else { throw limit.error }
    guard buffer.readableBytes >= GRPCFraming.prefixBytes + Int(length) else { return nil }
    buffer.moveReaderIndex(forwardBy: GRPCFraming.prefixBytes)
    guard let bytes = buffer.readSlice(length: Int(length)) else { return nil }
    return GRPCMessage(bytes: bytes, isCompressed: flag == 1)
  }

  /// Drops the held bytes.
  mutating func clear() {
    buffer = ByteBuffer()
  }
}
