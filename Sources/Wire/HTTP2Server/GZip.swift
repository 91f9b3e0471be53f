import CZlib
import NIOCore
import StatusCodes

/// The gzip compression of messages, the only one that Hearth supports.
enum GZip {
  /// The size by which output grows; one step is enough for most messages.
  private static let pieceBytes = 16 * 1024
  /// The compression level: fast rather than small, for loopback and local networks.
  private static let level: Int32 = 1

  /// Decompresses a message; a thrown error ends the call.
  ///
  /// It stops as soon as the output exceeds the limit, so that a small message cannot fill the
  /// memory.
  static func inflate(
    _ compressed: ByteBuffer,
    limit: GRPCMessageLimit
  ) throws(StatusError) -> ByteBuffer {
    let stream = makeStream()
    defer { stream.deallocate() }
    guard czlib_inflate_init(stream) == Z_OK else { throw outOfMemory }
    defer { inflateEnd(stream) }
    var compressed = compressed
    var plain = ByteBuffer()
    while true {
      let status = step(stream, &compressed, &plain) { CZlib.inflate($0, Z_NO_FLUSH) }
      guard plain.readableBytes <= limit.bytesMax else { throw limit.error }
      if status == Z_STREAM_END, compressed.readableBytes == 0 { return plain }
      guard status == Z_OK else {
        throw .invalidArgument("A message is marked as compressed, but is not valid gzip data.")
      }
    }
  }

  static func deflate(_ plain: ByteBuffer) throws(StatusError) -> ByteBuffer {
    let stream = makeStream()
    defer { stream.deallocate() }
    guard czlib_deflate_init(stream, level) == Z_OK else { throw outOfMemory }
    defer { deflateEnd(stream) }
    var plain = plain
    var compressed = ByteBuffer()
    while true {
      switch step(stream, &plain, &compressed, { CZlib.deflate($0, Z_FINISH) }) {
      case Z_STREAM_END: return compressed
      case Z_OK: continue
      default: throw outOfMemory
      }
    }
  }

  /// Allocates a stream at a fixed address, which zlib requires.
  private static func makeStream() -> UnsafeMutablePointer<z_stream> {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    return stream
  }

  /// Consumes as much of `input` as possible and writes one piece of `output`.
  private static func step(
    _ stream: UnsafeMutablePointer<z_stream>,
    _ input: inout ByteBuffer,
    _ output: inout ByteBuffer,
    _ body: (UnsafeMutablePointer<z_stream>) -> Int32
  ) -> Int32 {
    var status = Z_OK
    input.readWithUnsafeMutableReadableBytes { source in
      output.writeWithUnsafeMutableBytes(minimumWritableBytes: pieceBytes) { target in
        stream.pointee.next_in = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(source.count)
        stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(target.count)
        status = body(stream)
        return target.count - Int(stream.pointee.avail_out)
      }
      return source.count - Int(stream.pointee.avail_in)
    }
    return status
  }

  private static let outOfMemory = StatusError(.internal, "There is no memory for compression.")
}
