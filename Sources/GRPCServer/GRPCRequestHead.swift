import NIOHPACK
import RuntimeSupport

/// The head of a call, checked.
struct GRPCRequestHead: Equatable {
  var path: String
  var timeout: Duration?

  /// Why a stream is not a call that we can run.
  enum Refusal: Error, Equatable {
    /// Not gRPC at all: answered with a plain HTTP status.
    case http(status: Int)
    case status(StatusError)
    /// The status plus a header that says what we do understand.
    case compression(StatusError)
  }

  /// Reads a stream's first headers.
  init(_ headers: HPACKHeaders) throws(Refusal) {
    guard let contentType = headers.first(name: "content-type"), Self.isGRPC(contentType) else {
      throw .http(status: 415)
    }
    guard headers.first(name: ":method") == "POST", let path = headers.first(name: ":path") else {
      throw .http(status: 405)
    }
    if let encoding = headers.first(name: "grpc-encoding"), encoding != "identity" {
      throw .compression(
        StatusError(.unimplemented, "The compression \(encoding) is not supported; use identity.")
      )
    }
    self.path = path
    if let text = headers.first(name: "grpc-timeout") {
      guard let timeout = Self.timeout(text) else {
        throw .status(.invalidArgument("The grpc-timeout \(text) is malformed."))
      }
      self.timeout = timeout
    }
  }

  /// Plain gRPC with protobuf messages; not gRPC-Web, not JSON.
  private static func isGRPC(_ contentType: String) -> Bool {
    guard contentType.hasPrefix("application/grpc") else { return false }
    let rest = contentType.dropFirst("application/grpc".count)
    return rest.isEmpty || rest.hasPrefix(";") || rest == "+proto" || rest.hasPrefix("+proto;")
  }

  /// One to eight digits and a unit: `H`, `M`, `S`, `m`, `u` or `n`.
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

/// The headers that end a call.
enum GRPCTrailers {
  /// Clients refuse header lists beyond 8 KiB; a longer message is cut.
  private static let messageBytesMax = 6 * 1024

  /// Head of every reply that has messages.
  static let head: HPACKHeaders = [":status": "200", "content-type": "application/grpc"]

  /// The trailers of a call that went well.
  static let ok: HPACKHeaders = ["grpc-status": "0"]

  /// Trailers for a status, after messages or, with the head's fields, without any.
  static func make(_ status: StatusError, trailersOnly: Bool) -> HPACKHeaders {
    if status.statusCode == .ok && !trailersOnly { return ok }
    var headers = trailersOnly ? head : HPACKHeaders()
    headers.add(name: "grpc-status", value: String(status.statusCode.rawValue))
    if !status.statusMessage.isEmpty {
      headers.add(name: "grpc-message", value: percentEncoded(status.statusMessage))
    }
    return headers
  }

  /// Printable ASCII but `%` stays; every other byte of the UTF-8 becomes `%XX`.
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
