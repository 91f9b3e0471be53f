import HTTPMessages
import HTTPTypes
import NIOCore
import NIOHTTP1
import StatusCodes

/// The way a client detects the end of a response's body, RFC 9112, section 6.
enum ResponseFraming: Equatable {
  /// There is no body, even if the head announces one.
  case none
  case length(Int)
  case chunked
  /// The body ends with the connection: the only way for HTTP/1.0 if the length is unknown.
  case untilClose

  /// Determines the framing of a response; `isHead` marks the response to a HEAD request.
  init(_ response: Response, isHead: Bool, isHTTP11: Bool) {
    let code = response.head.status.code
    if isHead || code == 204 || code == 304 || (100..<200).contains(code) {
      self = .none
    } else if case .whole(let body) = response.body {
      self = .length(body.readableBytes)
    } else if let length = response.head.headerFields[.contentLength].flatMap({ Int($0) }) {
      self = .length(length)
    } else {
      self = isHTTP11 ? .chunked : .untilClose
    }
  }
}

extension ByteBuffer {
  /// Writes the head of a response and replaces its connection-related fields.
  mutating func writeHead(
    _ head: HTTPResponse,
    _ framing: ResponseFraming,
    bodyBytes: Int?,
    connection: String?
  ) {
    let phrase =
      head.status.reasonPhrase.isEmpty
      ? HTTPResponseStatus(statusCode: head.status.code).reasonPhrase : head.status.reasonPhrase
    writeString("HTTP/1.1 \(head.status.code) \(phrase)\r\n")
    for field in head.headerFields {
      switch field.name {
      case .contentLength, .transferEncoding, .connection, .upgrade, .keepAlive: continue
      default: writeField(field.name.rawName, field.value)
      }
    }
    switch framing {
    case .length(let length): writeField("Content-Length", String(length))
    case .chunked: writeField("Transfer-Encoding", "chunked")
    case .untilClose: break
    case .none:
      // The response to HEAD, and a 304, declare the length that the body would have.
      let mayHaveLength = head.status.code >= 200 && head.status.code != 204
      let known = bodyBytes.flatMap { $0 > 0 ? String($0) : nil }
      if mayHaveLength,
        let length = known ?? head.headerFields[.contentLength] ?? bodyBytes.map(String.init)
      {
        writeField("Content-Length", length)
      }
    }
    if let connection { writeField("Connection", connection) }
    writeStaticString("\r\n")
  }

  private mutating func writeField(_ name: String, _ value: String) {
    writeString(name)
    writeStaticString(": ")
    writeString(value)
    writeStaticString("\r\n")
  }

  /// Writes a piece of a chunked body.
  mutating func writeChunk(_ piece: ByteBuffer) {
    writeString(String(piece.readableBytes, radix: 16))
    writeStaticString("\r\n")
    writeImmutableBuffer(piece)
    writeStaticString("\r\n")
  }
}

extension HTTPField.Name {
  fileprivate static let keepAlive = fieldName("keep-alive")
}
