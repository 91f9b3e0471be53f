import NIOCore
import StatusCodes
import SwiftProtobuf

/// The conversion between messages and framed bytes, without copying the bytes.
enum GRPCFraming {
  /// The size of a frame's prefix: a flag byte, 1 for a compressed message, and a 4-byte length.
  static let prefixBytes = 5

  /// Decodes a message; throws `INVALID_ARGUMENT` if the bytes are not a valid message.
  static func message<M: Message>(_ bytes: ByteBuffer) throws -> M {
    do {
      return try M(serializedBytes: MessageBytes(received: bytes))
    } catch is BinaryDecodingError {
      throw StatusError.invalidArgument("The request is not a valid \(M.protoMessageName) message.")
    }
  }

  /// Encodes a message with its prefix.
  static func frame(_ message: some Message) throws -> ByteBuffer {
    let bytes: MessageBytes = try message.serializedBytes()
    return bytes.framed
  }

  /// Returns the bytes of an encoded message with their prefix.
  static func frame(encoded message: [UInt8]) -> ByteBuffer {
    var frame = ByteBufferAllocator().buffer(capacity: prefixBytes + message.count)
    frame.writeMultipleIntegers(0 as UInt8, UInt32(message.count))
    frame.writeBytes(message)
    return frame
  }
}

/// The encoding and decoding of the messages of one call.
struct GRPCCodec: Sendable {
  /// The smallest size at which a message is compressed; below it compression does not pay off.
  private static let compressedBytesMin = 1024

  var limit: GRPCMessageLimit
  var compressesReplies = false

  /// Decodes a request; a thrown error ends the call.
  func request<M: Message>(_ message: GRPCMessage) throws -> M {
    try GRPCFraming.message(
      message.isCompressed ? try GZip.inflate(message.bytes, limit: limit) : message.bytes
    )
  }

  /// Encodes a reply with its prefix.
  func frame(_ message: some Message) throws -> ByteBuffer {
    try compressed(GRPCFraming.frame(message))
  }

  /// Returns the bytes of an encoded reply with their prefix.
  func frame(encoded message: [UInt8]) throws -> ByteBuffer {
    try compressed(GRPCFraming.frame(encoded: message))
  }

  /// Returns the frame, compressed if the client accepts that and the frame is large enough.
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

/// The maximum size of a message before and after decompression, and the status when exceeded.
struct GRPCMessageLimit: Sendable {
  var bytesMax: Int
  var code = StatusCode.resourceExhausted

  /// The error that ends a call with a message beyond the limit.
  var error: StatusError {
    StatusError(code, "Request payload size exceeds the limit: \(bytesMax) bytes.")
  }
}

/// A received message.
struct GRPCMessage: Sendable, Equatable {
  var bytes: ByteBuffer
  var isCompressed = false
}

/// The bytes of a message in a `ByteBuffer`, where a prefix may precede them.
private struct MessageBytes: SwiftProtobufContiguousBytes {
  private(set) var framed: ByteBuffer
  private let offset: Int

  /// Creates room for a message of `count` bytes after its prefix, which is written.
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

  /// Creates a received message, which has no prefix.
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

/// A decoder that splits a stream's bytes into messages, regardless of HTTP/2 frame boundaries.
struct GRPCMessageDecoder {
  private let limit: GRPCMessageLimit
  private let takesCompressed: Bool
  private var buffer = ByteBuffer()

  /// Creates a decoder that refuses messages beyond `limit` before it buffers them.
  init(limit: GRPCMessageLimit, takesCompressed: Bool) {
    self.limit = limit
    self.takesCompressed = takesCompressed
  }

  /// The number of buffered bytes of incomplete messages.
  var heldBytes: Int { buffer.readableBytes }

  /// Appends the next bytes of the stream.
  mutating func append(_ bytes: ByteBuffer) {
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.discardReadBytes()
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// Returns the next complete message, or nil if it is incomplete; a thrown error ends the call.
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

  /// Discards the buffered bytes.
  mutating func clear() {
    buffer = ByteBuffer()
  }
}
