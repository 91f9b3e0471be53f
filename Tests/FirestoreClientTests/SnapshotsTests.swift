import FirestoreProtos
import FirestoreWire
import Foundation
import StatusCodes
import SwiftProtobuf
import Synchronization
import Testing

@testable import FirestoreClient

/// Listening over streams that break.
@Suite("Listening")
struct SnapshotsTests {
  private typealias Answer = Google_Firestore_V1_ListenResponse

  /// A transport that plays scripted streams one after another and then stays silent.
  private final class ScriptedStreams: FirestoreTransport {
    struct Stream: Sendable {
      var answers: [Google_Firestore_V1_ListenResponse]
      var end: FirestoreError?
    }

    private let streams: Mutex<[Stream]>
    private let asked = Mutex<
      [(target: Google_Firestore_V1_Target, credential: FirestoreCredential)]
    >([])

    init(_ streams: [Stream]) { self.streams = Mutex(streams) }

    var requests: [Google_Firestore_V1_Target] { asked.withLock { $0.map(\.target) } }
    var credentials: [FirestoreCredential] { asked.withLock { $0.map(\.credential) } }

    var firestore: Firestore {
      Firestore(project: "p", transport: self, retries: CallRetries(sleep: { _ in }))
    }

    func listen(
      _ request: Google_Firestore_V1_ListenRequest,
      as credential: FirestoreCredential,
      _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
    ) async throws {
      asked.withLock { $0.append((request.addTarget, credential)) }
      let stream = streams.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      guard let stream else {
        let (silence, continuation) = AsyncStream<Void>.makeStream()
        for await _ in silence {}
        return continuation.finish()
      }
      for answer in stream.answers { try await body(answer) }
      if let end = stream.end { throw end }
    }

    private var unused: FirestoreError { FirestoreError(.unimplemented, "not in this test") }

    func batchGetDocuments(
      _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
      as credential: FirestoreCredential
    ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] { throw unused }

    func commit(
      _ request: Google_Firestore_V1_CommitRequest,
      as credential: FirestoreCredential
    ) async throws -> Google_Firestore_V1_CommitResponse { throw unused }

    func beginTransaction(
      _ request: Google_Firestore_V1_BeginTransactionRequest,
      as credential: FirestoreCredential
    ) async throws -> Google_Firestore_V1_BeginTransactionResponse { throw unused }

    func rollback(
      _ request: Google_Firestore_V1_RollbackRequest,
      as credential: FirestoreCredential
    ) async throws { throw unused }

    func runQuery(
      _ request: Google_Firestore_V1_RunQueryRequest,
      as credential: FirestoreCredential
    ) async throws -> [Google_Firestore_V1_RunQueryResponse] { throw unused }

    func runAggregationQuery(
      _ request: Google_Firestore_V1_RunAggregationQueryRequest,
      as credential: FirestoreCredential
    ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] { throw unused }

    func listDocuments(
      _ request: Google_Firestore_V1_ListDocumentsRequest,
      as credential: FirestoreCredential
    ) async throws -> Google_Firestore_V1_ListDocumentsResponse { throw unused }

    func listCollectionIDs(
      _ request: Google_Firestore_V1_ListCollectionIdsRequest,
      as credential: FirestoreCredential
    ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse { throw unused }
  }

  private static func change(
    _ type: Google_Firestore_V1_TargetChange.TargetChangeType,
    _ ids: [Int32] = [1],
    at time: Int64? = nil
  ) -> Answer {
    .with {
      $0.targetChange.targetChangeType = type
      $0.targetChange.targetIds = ids
      if let time {
        $0.targetChange.readTime.seconds = time
        $0.targetChange.resumeToken = Data("t\(time)".utf8)
      }
    }
  }

  private static func document(_ id: String, _ number: Int64, isMember: Bool = true) -> Answer {
    .with {
      $0.documentChange.document = .with {
        $0.name = "projects/p/databases/(default)/documents/c/\(id)"
        $0.fields["n"] = .with { $0.integerValue = number }
        $0.createTime.seconds = 1
        $0.updateTime.seconds = number
      }
      if isMember {
        $0.documentChange.targetIds = [1]
      } else {
        $0.documentChange.removedTargetIds = [1]
      }
    }
  }

  private static func snapshot(_ time: Int64) -> Answer { change(.noChange, [], at: time) }

  /// Returns the first snapshots of a collection, each as document IDs with numbers.
  private func listen(
    _ streams: ScriptedStreams,
    as tokens: ScriptedTokens? = nil,
    count: Int
  ) async throws -> [[String]] {
    let firestore = tokens.map { streams.firestore.acting(as: $0) } ?? streams.firestore
    var shown: [[String]] = []
    for try await snapshot in firestore.collection("c").snapshots() {
      shown.append(snapshot.map { "\($0.id)\($0["n"] == .integer(2) ? 2 : 1)" })
      if shown.count == count { break }
    }
    return shown
  }

  @Test("What comes before the target is current is not shown")
  func current() async throws {
    let streams = ScriptedStreams([
      .init(answers: [
        Self.change(.add), Self.document("a", 1), Self.snapshot(1), Self.document("b", 1),
        Self.change(.current, at: 2), Self.snapshot(2), Self.document("a", 1, isMember: false),
        Self.snapshot(3),
      ])
    ])

    #expect(try await listen(streams, count: 2) == [["a1", "b1"], ["b1"]])
  }

  @Test("After a failure that passes, listening goes on from the last snapshot's token")
  func resumes() async throws {
    let streams = ScriptedStreams([
      .init(
        answers: [
          Self.change(.add), Self.document("a", 1), Self.change(.current, at: 1),
          Self.snapshot(1), Self.document("b", 1),
        ],
        end: FirestoreError(.unavailable, "gone")
      ),
      .init(answers: [
        Self.change(.add), Self.document("b", 2), Self.change(.current, at: 5), Self.snapshot(5),
      ]),
    ])

    #expect(try await listen(streams, count: 2) == [["a1"], ["a1", "b2"]])
    #expect(streams.requests.map { String(decoding: $0.resumeToken, as: UTF8.self) } == ["", "t1"])
  }

  @Test("A count that differs makes it start over, and shows only what is different")
  func filter() async throws {
    var filter = Answer()
    filter.filter.targetID = 1
    filter.filter.count = 1
    let streams = ScriptedStreams([
      .init(answers: [
        Self.change(.add), Self.document("a", 1), Self.document("b", 1),
        Self.change(.current, at: 1), Self.snapshot(1), filter,
      ]),
      .init(answers: [
        Self.change(.add), Self.document("a", 1), Self.change(.current, at: 2), Self.snapshot(2),
      ]),
    ])

    #expect(try await listen(streams, count: 2) == [["a1", "b1"], ["a1"]])
    #expect(streams.requests.map(\.resumeToken.isEmpty) == [true, true])
  }

  @Test("A target that is refused throws the server's status")
  func refused() async throws {
    var removal = Self.change(.remove)
    removal.targetChange.cause.code = Int32(StatusCode.permissionDenied.rawValue)
    removal.targetChange.cause.message = "no"
    let streams = ScriptedStreams([.init(answers: [removal])])

    let error = await #expect(throws: FirestoreError.self) {
      try await listen(streams, count: 1)
    }
    #expect(error?.code == .permissionDenied)
  }

  @Test("A token that expires during a stream is renewed, and listening goes on from there")
  func expiredToken() async throws {
    let streams = ScriptedStreams([
      .init(
        answers: [
          Self.change(.add), Self.document("a", 1), Self.change(.current, at: 1),
          Self.snapshot(1),
        ],
        end: FirestoreError(.unauthenticated, "the token has expired")
      ),
      .init(answers: [
        Self.change(.add), Self.document("b", 2), Self.change(.current, at: 5), Self.snapshot(5),
      ]),
    ])

    let shown = try await listen(streams, as: ScriptedTokens(), count: 2)
    #expect(shown == [["a1"], ["a1", "b2"]])
    #expect(streams.credentials == [.idToken("t1"), .idToken("t2")])
    #expect(streams.requests.map { String(decoding: $0.resumeToken, as: UTF8.self) } == ["", "t1"])
  }

  @Test("While a token cannot be renewed a listener waits; when the user is signed out it ends")
  func tokenErrors() async throws {
    let answers = [
      Self.change(.add), Self.document("a", 1), Self.change(.current, at: 1), Self.snapshot(1),
    ]
    let offline = ScriptedTokens(failures: [
      FirestoreError(.unavailable, "no connection"), FirestoreError(.unavailable, "no connection"),
    ])
    let streams = ScriptedStreams([.init(answers: answers)])
    #expect(try await listen(streams, as: offline, count: 1) == [["a1"]])

    let signedOut = ScriptedTokens(failures: [ScriptedTokens.SignedOutError()])
    await #expect(throws: ScriptedTokens.SignedOutError.self) {
      try await listen(ScriptedStreams([.init(answers: answers)]), as: signedOut, count: 1)
    }
  }
}
