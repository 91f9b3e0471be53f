import DocumentStore
import FirestoreProtos
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import JSONTranscoding
import NIOCore
import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Encoding and decoding of messages as JSON, with precise errors for malformed JSON.
enum JSONPayload {
  /// The largest body that is decoded at normal priority.
  private static let shortBytes = 32 * 1024
  /// The approximate size of an array's chunks; a large array is never in memory as a whole.
  private static let pieceBytes = 64 * 1024

  /// The schema of the messages; decoding the committed descriptors cannot fail.
  private static let schema = Result {
    try MessageSchema(
      descriptors: Data(
        base64Encoded: FirestoreDescriptors.base64,
        options: .ignoreUnknownCharacters
      ) ?? Data()
    )
  }

  /// Decodes a message; an empty body is an empty message, whatever its content type.
  ///
  /// `root` is the message's field in the request. A large body is decoded at low priority.
  static func message<M: Message>(_ body: ByteBuffer, at root: String? = nil) async throws -> M {
    let schema = try schema.get()
    guard body.readableBytes > shortBytes else {
      return try JSONTranscoder.message(Array(body.readableBytesView), at: root, of: schema)
    }
    return try await withTaskExecutorPreference(LongWorkExecutor.shared) {
      // Moves this task to the end of the executor's queue.
      await Task.yield()
      return try JSONTranscoder.message(Array(body.readableBytesView), at: root, of: schema)
    }
  }

  /// Returns a response that streams messages as an array.
  static func array(_ messages: StreamReplies<some Message>) -> Response {
    var response = Response(
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
    response.heldBytes = messages.heldBytes
    return response
  }
}
