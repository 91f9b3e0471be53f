import FlowControl
import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a listener's only target, derived from the responses of Listen.
///
/// The rules are those of the official server clients. A snapshot is made only by a change for no
/// particular target, after the target has become current. If the server's document count differs,
/// listening starts again from scratch.
struct WatchedTarget: Sendable {
  /// Any id is valid.
  ///
  /// The Node client uses the same.
  private static let id: Int32 = 1

  /// The error after which listening must start again without a resume token.
  struct RestartError: Error {}

  private let target: Google_Firestore_V1_Target
  private let orders: [Query.Order]
  private let snapshotOf: @Sendable (FirestoreDocument, Timestamp) -> DocumentSnapshot
  private var documents: [DocumentName: FirestoreDocument] = [:]
  /// The documents as of the time of the resume token.
  private var documentsAtToken: [DocumentName: FirestoreDocument] = [:]
  private var shown: [DocumentName: DocumentSnapshot]?
  private var isCurrent = false
  private var token = Data()

  /// Throws the error of an invalid query.
  init(_ query: DocumentQuery) throws {
    var valid = try query.validQuery()
    orders = DocumentQuery.finalOrders(valid)
    valid.projection = nil
    let firestore = query.firestore
    target = .with {
      $0.targetID = Self.id
      $0.query.parent = WireFormat.parent(of: valid)
      $0.query.structuredQuery = WireFormat.proto(valid)
    }
    snapshotOf = { document, readTime in
      DocumentSnapshot(
        reference: firestore.document(document.name),
        document: document,
        readTime: readTime
      )
    }
  }

  /// Throws the error of an invalid reference.
  init(_ reference: DocumentReference) throws {
    let name = try reference.validName()
    orders = []
    target = .with {
      $0.targetID = Self.id
      $0.documents.documents = [name.description]
    }
    snapshotOf = { DocumentSnapshot(reference: reference, document: $0, readTime: $1) }
  }

  /// Returns the request that resumes from the token, and discards later changes.
  mutating func request(database: DatabaseName) -> Google_Firestore_V1_ListenRequest {
    documents = documentsAtToken
    isCurrent = false
    return .with {
      $0.database = database.description
      $0.addTarget = target
      if !token.isEmpty {
        $0.addTarget.resumeToken = token
        $0.addTarget.expectedCount.value = Int32(clamping: documents.count)
      }
    }
  }

  /// Discards all state except for the last snapshot.
  mutating func startOver() {
    documentsAtToken = [:]
    token = Data()
  }

  /// Applies a response; returns a snapshot if the response completes a different one.
  mutating func take(_ answer: Google_Firestore_V1_ListenResponse) throws -> QuerySnapshot? {
    switch answer.responseType {
    case .targetChange(let change): return try take(change)
    case .documentChange(let change):
      let document = try WireFormat.document(change.document)
      if change.targetIds.contains(Self.id) {
        documents[document.name] = document
      } else if change.removedTargetIds.contains(Self.id) {
        documents[document.name] = nil
      }
    case .documentDelete(let deletion):
      documents[try WireFormat.documentName(deletion.document)] = nil
    case .documentRemove(let removal):
      documents[try WireFormat.documentName(removal.document)] = nil
    case .filter(let filter):
      if Int(filter.count) != documents.count { throw RestartError() }
    case nil: break
    }
    return nil
  }

  private mutating func take(
    _ change: Google_Firestore_V1_TargetChange
  ) throws -> QuerySnapshot? {
    switch change.targetChangeType {
    case .remove:
      let code = StatusCode(rawValue: Int(change.cause.code)) ?? .unknown
      throw FirestoreError(code, change.cause.message)
    case .reset:
      documents = [:]
      isCurrent = false
    case .current: isCurrent = true
    case .noChange where change.targetIds.isEmpty && change.hasReadTime && isCurrent:
      token = change.resumeToken
      // Without a token the server will send all documents again.
      documentsAtToken = token.isEmpty ? [:] : documents
      return snapshot(at: try WireFormat.timestamp(change.readTime))
    default: break
    }
    return nil
  }

  private mutating func snapshot(at readTime: Timestamp) -> QuerySnapshot? {
    var changes: [QuerySnapshot.Change] = []
    var now: [DocumentName: DocumentSnapshot] = [:]
    for (name, document) in documents {
      let old = shown?[name]
      let isSame = old?.document == document
      now[name] = isSame ? old : snapshotOf(document, readTime)
      if let snapshot = now[name], !isSame {
        changes.append(.init(kind: old == nil ? .added : .modified, document: snapshot))
      }
    }
    for (name, old) in shown ?? [:] where documents[name] == nil {
      changes.append(.init(kind: .removed, document: old))
    }
    guard shown == nil || !changes.isEmpty else { return nil }
    shown = now
    return QuerySnapshot(
      documents: now.values.sorted(by: precedes),
      readTime: readTime,
      changes: changes.sorted { precedes($0.document, $1.document) }
    )
  }

  private func precedes(_ left: DocumentSnapshot, _ right: DocumentSnapshot) -> Bool {
    for order in orders where !order.path.isDocumentID {
      guard let a = left.fields[order.path], let b = right.fields[order.path] else { continue }
      let result = ValueOrder.compare(a, b)
      if result != .equal { return (result == .less) != order.descending }
    }
    let isDescending = orders.last?.descending ?? false
    return (left.reference.name < right.reference.name) != isDescending
  }
}

extension FirestoreCalls {
  /// Listens until the task is cancelled, and resumes after temporary failures.
  ///
  /// Further snapshots wait while `show` runs. Throws `FirestoreError` for permanent failures.
  func listen(
    to target: WatchedTarget,
    of firestore: Firestore,
    _ show: @escaping @Sendable (QuerySnapshot) async -> Void
  ) async throws {
    let state = WatchState(target)
    var failures = 0
    while !Task.isCancelled {
      do {
        try await identity.authorize { credential in
          try await transport.listen(
            await state.request(database: firestore.database),
            as: credential
          ) { answer in
            guard let snapshot = try await state.take(answer) else { return }
            try await identity.checkSignedIn()
            await show(snapshot)
          }
        }
        failures = await state.hasAdvanced() ? 1 : failures + 1
      } catch is WatchedTarget.RestartError {
        await state.startOver()
        failures += 1
      } catch let error as FirestoreError where error.allowsListeningAgain {
        failures = await state.hasAdvanced() ? 1 : failures + 1
      }
      try await retries.sleep(
        retries.backOff.delay(afterFailures: failures, random: retries.random())
      )
    }
  }
}

extension FirestoreError {
  /// True if a listener may resume after this failure, as in the Node client.
  package var allowsListeningAgain: Bool {
    switch code {
    case .cancelled, .unknown, .deadlineExceeded, .resourceExhausted, .internal, .unavailable,
      .unauthenticated:
      true
    default: false
    }
  }
}

/// The state of a target, which successive streams change.
private actor WatchState {
  private var target: WatchedTarget
  private var didAdvance = false

  init(_ target: WatchedTarget) { self.target = target }

  func take(_ answer: Google_Firestore_V1_ListenResponse) throws -> QuerySnapshot? {
    didAdvance = true
    return try target.take(answer)
  }

  func request(database: DatabaseName) -> Google_Firestore_V1_ListenRequest {
    target.request(database: database)
  }

  func startOver() { target.startOver() }

  /// Returns true if the server has sent a response since the last call.
  func hasAdvanced() -> Bool {
    defer { didAdvance = false }
    return didAdvance
  }
}
