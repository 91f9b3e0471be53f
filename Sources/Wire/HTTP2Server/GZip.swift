import CZlib
import NIOCore
import RuntimeSupport

/// The one compression of messages that Hearth supports.
enum GZip {
  /// The room made at a time; most messages need it once.
  private static let pieceBytes = 16 * 1024
  /// Quick rather than small: compressed messages cross a loopback or a local network.
  private static let level: Int32 = 1

  /// Decompresses the bytes; throws what ends the call.
  ///
  /// Stops as soon as there are more than the limit, so a small message cannot fill the memory.
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

  /// Compresses the bytes.
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

  /// A stream at a fixed address, which zlib requires.
  private static func makeStream() -> UnsafeMutablePointer<z_stream> {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    return stream
  }

  /// Takes as much as possible of `input` and writes a piece of `output`.
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
