import Identifiers
import NIOCore
import StatusCodes

/// The validated head of a gRPC call.
struct GRPCRequestHead: Equatable {
  /// The supported encodings, as listed in `grpc-accept-encoding`.
  static let encodings = "identity,gzip"

  var path: String
  var timeout: Duration?
  /// True if the client compresses its requests.
  var isCompressed = false
  /// True if replies may be compressed: the client compresses its requests and accepts gzip.
  var acceptsCompressed = false

  /// The reason why a stream is not a valid call.
  enum RefusalError: Error, Equatable {
    /// The request is not gRPC; the response is a plain HTTP status.
    case http(_ status: Int)
    case status(StatusError)
    /// The status, with a header that lists the supported encodings.
    case compression(StatusError)
  }

  /// Validates the head of a request with a gRPC content type.
  init(_ head: HTTP2RequestHead) throws(RefusalError) {
    guard let contentType = head.contentType, Self.isProtobuf(contentType) else {
      throw .http(415)
    }
    guard head.method == "POST" else { throw .http(405) }
    guard head.te != nil else {
      throw .status(.invalidArgument("The header te: trailers is missing."))
    }
    switch head.encoding {
    case nil, "identity": break
    case "gzip": isCompressed = true
    case let other?:
      throw .compression(
        StatusError(
          .unimplemented,
          "The compression \(other) is not supported; use \(Self.encodings)."
        )
      )
    }
    if isCompressed, let accepted = head.acceptedEncodings {
      acceptsCompressed = accepted.split(separator: ",").contains { encoding in
        encoding.drop { $0 == " " }.prefix { $0 != " " } == "gzip"
      }
    }
    path = head.path
    if let text = head.timeout {
      guard let timeout = Self.timeout(text) else {
        throw .status(.invalidArgument("The grpc-timeout \(text) is malformed."))
      }
      self.timeout = timeout
    }
  }

  /// Returns true if a content type is any form of gRPC.
  static func isGRPC(_ contentType: String?) -> Bool {
    contentType?.hasPrefix("application/grpc") ?? false
  }

  /// Returns true for plain gRPC with protobuf messages, as opposed to gRPC-Web or JSON.
  private static func isProtobuf(_ contentType: String) -> Bool {
    if contentType == "application/grpc" { return true }
    guard isGRPC(contentType) else { return false }
    let rest = contentType.dropFirst("application/grpc".count)
    return rest.hasPrefix(";") || rest == "+proto" || rest.hasPrefix("+proto;")
  }

  /// Parses one to eight digits and a unit: `H`, `M`, `S`, `m`, `u` or `n`.
  static func timeout(_ text: String) -> Duration? {
    let digits = text.utf8.dropLast()
    guard let unit = text.utf8.last, (1...8).contains(digits.count) else { return nil }
    var amount: Int64 = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      amount = amount * 10 + Int64(digit - UInt8(ascii: "0"))
    }
    switch unit {
    case UInt8(ascii: "H"): return .seconds(amount * 3600)
    case UInt8(ascii: "M"): return .seconds(amount * 60)
    case UInt8(ascii: "S"): return .seconds(amount)
    case UInt8(ascii: "m"): return .milliseconds(amount)
    case UInt8(ascii: "u"): return .microseconds(amount)
    case UInt8(ascii: "n"): return .nanoseconds(amount)
    default: return nil
    }
  }
}

/// The encoded header blocks of a call.
enum GRPCTrailers {
  /// The maximum size of a status message; longer ones are cut.
  ///
  /// Clients refuse header lists beyond 8 KiB.
  private static let messageBytesMax = 6 * 1024

  /// The head of a response with messages.
  static let head = makeHead { _ in }

  /// The head of a response whose messages may be compressed.
  static let compressedHead = makeHead { $0.writeHeaderField("grpc-encoding", "gzip") }

  /// The trailers of a successful call.
  static let ok: ByteBuffer = {
    var block = ByteBuffer()
    block.writeHeaderField("grpc-status", "0")
    return block
  }()

  /// Returns the trailers for a status.
  ///
  /// With `trailersOnly` they include the head, for a response without messages.
  static func make(_ status: StatusError, trailersOnly: Bool) -> ByteBuffer {
    if status.statusCode == .ok && !trailersOnly { return ok }
    var block = trailersOnly ? head : ByteBuffer()
    block.writeHeaderField("grpc-status", String(status.statusCode.rawValue))
    if !status.statusMessage.isEmpty {
      block.writeHeaderField("grpc-message", percentEncoded(status.statusMessage))
    }
    return block
  }

  private static func makeHead(_ add: (inout ByteBuffer) -> Void) -> ByteBuffer {
    var block = ByteBuffer()
    block.writeStatusField(200)
    block.writeHeaderField("content-type", "application/grpc")
    add(&block)
    return block
  }

  /// Percent-encodes the UTF-8 bytes as `%XX`, except printable ASCII other than `%`.
  static func percentEncoded(_ message: String) -> String {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(message.utf8.count)
    for scalar in message.unicodeScalars {
      guard encoded.count < messageBytesMax else { break }
      for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
        if (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "%") {
          encoded.append(byte)
        } else {
          encoded += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
        }
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  private static let hexDigits = Array("0123456789ABCDEF".utf8)
}
