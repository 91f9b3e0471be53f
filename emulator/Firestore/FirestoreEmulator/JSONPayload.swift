import HTTPSupport
import HTTPTypes
import Invocation
import JSONText
import NIOCore
import RuntimeSupport
import SwiftProtobuf

/// Reads and writes messages as JSON, and says what is wrong with malformed JSON.
enum JSONPayload {
  /// The size of an array's pieces, roughly, so that a large array is never whole in memory.
  private static let pieceBytes = 64 * 1024

  /// Reads a message; an empty body is an empty message, whatever its content type.
  static func message<M: Message>(_ body: ByteBuffer) throws(StatusError) -> M {
    guard body.readableBytes > 0 else { return M() }
    do {
      return try M(jsonUTF8Bytes: Array(body.readableBytesView))
    } catch let error as JSONDecodingError {
      throw .invalidArgument("Invalid JSON payload received. \(complaint(error))")
    } catch {
      throw .invalidArgument("Invalid JSON payload received.")
    }
  }

  /// The JSON text of an error.
  static func error(_ error: any StatusConvertible) -> String {
    "{\"error\":{\"code\":\(error.statusCode.httpStatus),"
      + "\"message\":\(jsonQuoted(error.statusMessage)),\"status\":\"\(error.statusCode.name)\"}}"
  }

  /// A reply that writes messages as an array.
  static func array(_ messages: StreamReplies<some Message>) -> Response {
    Response(
      status: .ok,
      headers: [.contentType: "application/json; charset=utf-8"],
      body: .produced { write in
        var piece = ByteBuffer(string: "[")
        var isFirst = true
        for message in messages {
          if !isFirst { piece.writeString(",\n") }
          isFirst = false
          piece.writeBytes(try message.jsonUTF8Bytes() as [UInt8])
          if piece.readableBytes >= pieceBytes {
            try await write(piece)
            piece = ByteBuffer()
          }
        }
        piece.writeString("]\n")
        try await write(piece)
      }
    )
  }

  private static func complaint(_ error: JSONDecodingError) -> String {
    switch error {
    case .unknownField(let name): "Unknown name \"\(name)\": Cannot find field."
    case .malformedNumber, .leadingZero: "A number is malformed."
    case .numberRange: "A number is out of its field's range."
    case .malformedMap: "An object was expected."
    case .malformedBool: "A boolean was expected."
    case .malformedString, .unquotedMapKey: "A string was expected."
    case .invalidUTF8: "A string is not valid UTF-8."
    case .unrecognizedEnumValue: "The name of an enumeration's value is unknown."
    case .illegalNull: "A null stands where none may."
    case .truncated: "Unexpected end of string."
    case .malformedDuration: "A duration is malformed."
    case .malformedTimestamp: "A timestamp must be RFC 3339, year 0001 to 9999."
    case .trailingGarbage: "Something follows the payload."
    case .conflictingOneOf: "A oneof field is already set."
    case .messageDepthLimit: "It is nested too deeply."
    default: "It does not fit the request's message."
    }
  }
}
