import DocumentModel
package import DocumentStore
package import FirestoreProtos
import FirestoreWire
package import Identity
import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension FirestoreService {
  /// Serves a client's stream of commits, one after the other, until its requests end.
  ///
  /// `next` returns one request after the other, and nil after the last. The first message opens
  /// the stream and has no writes. A commit that fails ends the stream with its status, and no
  /// later commit is made. The listeners of `client` receive a commit before its response is sent,
  /// unless they are slow.
  package func write(
    from next: () async throws -> Google_Firestore_V1_WriteRequest?,
    resourcePrefix: String?,
    auth: AuthContext,
    client: ListenClient? = nil,
    _ send: (Google_Firestore_V1_WriteResponse) async throws -> Void
  ) async throws {
    guard let first = try await next() else { return }
    let database = try streamDatabase(first.database, resourcePrefix)
    guard first.streamToken.isEmpty else {
      // As in production, streams do not outlive their connection.
      throw StatusError(.aborted, "The write stream cannot be resumed; open a new one.")
    }
    guard first.writes.isEmpty else {
      throw StatusError.invalidArgument("The first message of a write stream must have no writes.")
    }
    var tokens = StreamTokens()
    try await send(
      .with {
        $0.streamID = makeID()
        $0.streamToken = tokens.next()
      }
    )
    while let request = try await next() {
      try checkStream(request.database, is: database)
      try tokens.check(request.streamToken)
      let result = try await store.commit(
        try writes(request.writes, in: database),
        database: database,
        transaction: nil,
        auth: auth
      )
      await store.waitForListeners(of: client)
      try await send(
        .with {
          $0.streamToken = tokens.next()
          $0.writeResults = result.results.map(Self.proto)
          $0.commitTime = WireFormat.proto(result.commitTime)
        }
      )
    }
  }
}

/// The tokens of one write stream.
///
/// A client sends the last token it has received, or none.
private struct StreamTokens {
  private var last: UInt64 = 0

  mutating func next() -> Data {
    last += 1
    return Self.token(last)
  }

  func check(_ token: Data) throws(StatusError) {
    guard !token.isEmpty else { return }
    let number = token.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard token.count == 8, (1...last).contains(number) else {
      throw .invalidArgument("Invalid stream token: it is not of this stream.")
    }
  }

  private static func token(_ number: UInt64) -> Data {
    Data((0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - $0 * 8)) })
  }
}
