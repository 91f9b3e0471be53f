import DocumentModel
import FirestoreProtos
import FirestoreWire
import RuntimeSupport
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a listener knows of its one target, as the answers of Listen tell it.
///
/// The rules are those of the official clients for servers: only a change of no particular target,
/// after the target was current, makes a snapshot; a count that differs means to begin anew.
struct WatchedTarget: Sendable {
  /// Any id does; Node's client has the same.
  private static let id: Int32 = 1

  /// Why listening must begin anew without a token.
  struct BeginsAnew: Error {}

  private let target: Google_Firestore_V1_Target
  private let orders: [Query.Order]
  private let snapshotOf: @Sendable (FirestoreDocument, Timestamp) -> DocumentSnapshot
  private var documents: [DocumentName: FirestoreDocument] = [:]
  /// The documents at the time of the token.
  private var documentsAtToken: [DocumentName: FirestoreDocument] = [:]
  private var shown: [DocumentName: DocumentSnapshot]?
  private var isCurrent = false
  private var token = Data()

  /// Throws what is wrong with the query.
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

  /// Throws what is wrong with the reference.
  init(_ reference: DocumentReference) throws {
    let name = try reference.validName()
    orders = []
    target = .with {
      $0.targetID = Self.id
      $0.documents.documents = [name.description]
    }
    snapshotOf = { DocumentSnapshot(reference: reference, document: $0, readTime: $1) }
  }

  /// The request that goes on from the token; what was told after it is forgotten.
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

  /// Forgets everything but what was shown.
  mutating func beginAnew() {
    documentsAtToken = [:]
    token = Data()
  }

  /// Takes an answer; returns a snapshot when it completes one that differs from the last.
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
      if Int(filter.count) != documents.count { throw BeginsAnew() }
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
      // Without a token everything is told anew.
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
  /// Listens until the task is cancelled, through failures that pass.
  ///
  /// `show` holds further snapshots up while it runs. Throws `FirestoreError` for what does not
  /// pass.
  func listen(
    to target: WatchedTarget,
    of firestore: Firestore,
    _ show: @escaping @Sendable (QuerySnapshot) async -> Void
  ) async throws {
    let state = WatchState(target)
    var failures = 0
    while !Task.isCancelled {
      do {
        try await transport.listen(
          await state.request(database: firestore.database),
          as: credential
        ) { answer in
          if let snapshot = try await state.take(answer) { await show(snapshot) }
        }
        failures = await state.hasAdvanced() ? 1 : failures + 1
      } catch is WatchedTarget.BeginsAnew {
        await state.beginAnew()
        continue
      } catch let error as FirestoreError where Self.passes(error) {
        failures = await state.hasAdvanced() ? 1 : failures + 1
      }
      try await retries.sleep(
        retries.backOff.delay(afterFailures: failures, random: retries.random())
      )
    }
  }

  /// Whether a listener that failed may begin again; these are the codes of Node's client.
  private static func passes(_ error: FirestoreError) -> Bool {
    switch error.code {
    case .cancelled, .unknown, .deadlineExceeded, .resourceExhausted, .internal, .unavailable,
      .unauthenticated:
      true
    default: false
    }
  }
}

/// A watched target that one stream after the other changes.
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

  func beginAnew() { target.beginAnew() }

  /// Whether anything was told since this was last asked.
  func hasAdvanced() -> Bool {
    defer { didAdvance = false }
    return didAdvance
  }
}
