import FirestoreProtos
import NIOCore
import NIOPosix
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The first snapshot of a listener on a whole collection.
struct FirstSnapshot: Sendable {
  /// The time from connecting to the snapshot.
  var milliseconds: Double
  /// The number of documents sent up to the snapshot.
  var documentsSent: Int
  /// The resume token for a later listener.
  var token: Data

  private static let timeMax = TimeAmount.seconds(120)

  /// Listens to a collection until the first snapshot.
  ///
  /// With a token, listens as a client that already has `documents` of it as of then.
  static func take(
    of collection: String,
    _ firestore: FirestoreLoad,
    resuming token: Data? = nil,
    documents: Int = 0
  ) async throws -> FirstSnapshot {
    var request = Google_Firestore_V1_ListenRequest()
    request.database = firestore.database
    request.addTarget.targetID = 2
    request.addTarget.query.parent = "\(firestore.database)/documents"
    request.addTarget.query.structuredQuery.from = [.with { $0.collectionID = collection }]
    if let token {
      request.addTarget.resumeToken = token
      request.addTarget.expectedCount.value = Int32(documents)
    }
    let bytes: [UInt8] = try request.serializedBytes()
    let loop = Load.eventLoops.next()
    let promise = loop.makePromise(of: FirstSnapshot.self)
    promise.failing(at: .now() + timeMax)
    let watch = SnapshotWatch(promise)
    let connection = try await ListenConnection.connect(
      to: firestore.address,
      database: firestore.database,
      token: firestore.token,
      on: loop,
      requests: [ByteBuffer(bytes: bytes)]
    ) { _, reply in watch.take(reply) }.get()
    defer { loop.execute { connection.close() } }
    return try await promise.futureResult.get()
  }
}

/// Counts the documents sent until the first snapshot.
///
/// `@unchecked Sendable`: accessed only on the event loop of its promise.
private final class SnapshotWatch: @unchecked Sendable {
  private let promise: EventLoopPromise<FirstSnapshot>
  private let began = NIODeadline.now()
  private var documents = 0
  private var isCurrent = false

  init(_ promise: EventLoopPromise<FirstSnapshot>) { self.promise = promise }

  func take(_ reply: Result<ListenConnection.Reply, any Error>) {
    switch reply {
    case .failure(let error): promise.fail(error)
    case .success(let reply):
      switch reply.responseType {
      case .documentChange: documents += 1
      case .targetChange(let change) where change.targetChangeType == .current: isCurrent = true
      case .targetChange(let change)
      where isCurrent && change.targetChangeType == .noChange && change.targetIds.isEmpty:
        promise.succeed(
          FirstSnapshot(
            milliseconds: Double((NIODeadline.now() - began).nanoseconds) / 1e6,
            documentsSent: documents,
            token: change.resumeToken
          )
        )
      default: break
      }
    }
  }
}
