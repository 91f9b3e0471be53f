import DocumentModel
import FirestoreClient
import FirestoreProtos
import FirestoreWire
import SwiftProtobuf
import Synchronization

/// Documents in memory: as much of Firestore as Psst's functions read.
final class MemoryFirestore: FirestoreTransport {
  private struct State {
    var documents: [ResourcePath: [String: Value]] = [:]
    var reads = 0
    var afterRead: [Int: @Sendable (MemoryFirestore) -> Void] = [:]
  }

  private let database = DatabaseName(project: "demo-test")
  private let state = Mutex(State())

  var firestore: Firestore {
    Firestore(project: "demo-test", transport: self, retries: RetryPolicy(attemptsMax: 1))
  }

  /// How often documents were read by name.
  var reads: Int { state.withLock { $0.reads } }

  func put(_ path: String, _ fields: [String: Value]?) {
    state.withLock { $0.documents[ResourcePath(slashSeparated: path)] = fields }
  }

  /// Runs `change` right after a read by name, counted from 1 and from now.
  func afterRead(_ number: Int, _ change: @escaping @Sendable (MemoryFirestore) -> Void) {
    state.withLock { $0.afterRead[$0.reads + number] = change }
  }

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] {
    let (answers, change) = try state.withLock { state in
      state.reads += 1
      let answers = try request.documents.map { text in
        let name = try WireFormat.documentName(text)
        return Google_Firestore_V1_BatchGetDocumentsResponse.with { answer in
          if let fields = state.documents[name.path] {
            answer.found = WireFormat.proto(document(name.path, fields))
          } else {
            answer.missing = text
          }
        }
      }
      return (answers, state.afterRead.removeValue(forKey: state.reads))
    }
    change?(self)
    return answers
  }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] {
    let query = try WireFormat.query(request.structuredQuery, parent: request.parent)
    guard query.filter == nil, query.orders.allSatisfy({ $0.path.isDocumentID }),
      let collection = query.collectionID
    else { throw FirestoreError(.unimplemented, "this memory only lists collections") }
    let path = query.parent.appending(collection)
    var found = state.withLock { state in
      state.documents.filter { $0.key.parent == path }.map { document($0.key, $0.value) }
    }
    found.sort { $0.name < $1.name }
    if case .reference(let start)? = query.start?.values.first {
      found.removeAll { $0.name <= start }
    }
    return found.prefix(query.limit ?? found.count).map { document in
      .with { $0.document = WireFormat.proto(document) }
    }
  }

  private func document(_ path: ResourcePath, _ fields: [String: Value]) -> Document {
    Document(
      name: DocumentName(database: database, path: path),
      fields: fields,
      createTime: Timestamp(microseconds: 0),
      updateTime: Timestamp(microseconds: 0)
    )
  }

  // MARK: What Psst's functions do not do

  private struct NotNeeded: Error {}

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse { throw NotNeeded() }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse { throw NotNeeded() }

  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws { throw NotNeeded() }

  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] { throw NotNeeded() }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse { throw NotNeeded() }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse { throw NotNeeded() }
}
