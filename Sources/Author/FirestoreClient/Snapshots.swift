import AsyncAlgorithms

/// A query's documents now and after every change, for as long as somebody asks for them.
///
/// ```swift
/// for try await snapshot in firestore.collection("chats").where("open", .equal, true).snapshots() {
///   for change in snapshot.changes where change.kind == .added { greet(change.document) }
/// }
/// ```
///
/// Each snapshot shows one moment; what one commit has changed comes in one snapshot. When the
/// connection fails, listening goes on by itself from where it was. While a snapshot is being dealt
/// with, the next ones wait; when too many do, they come as one, with all changes. Documents have all
/// their fields, whatever the query selects. Each loop listens on its own and ends with its task, or
/// when it is left. Throws `FirestoreError` for what does not pass, as `DocumentQuery.get()` does.
public struct QuerySnapshots: AsyncSequence, Sendable {
  /// One moment's documents.
  public typealias Element = QuerySnapshot

  let query: DocumentQuery

  /// Begins to listen.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(listening: Listening(to: query))
  }

  /// The snapshots of one loop.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let listening: Listening

    /// The next snapshot; nil when the task is cancelled.
    public mutating func next() async throws -> QuerySnapshot? { try await listening.next() }
  }
}

/// A document now and after every change, also while there is none; like `QuerySnapshots`.
public struct DocumentSnapshots: AsyncSequence, Sendable {
  /// The document at one moment.
  public typealias Element = DocumentSnapshot

  let reference: DocumentReference

  /// Begins to listen.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(reference: reference, listening: Listening(to: reference))
  }

  /// The snapshots of one loop.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let reference: DocumentReference
    let listening: Listening

    /// The next snapshot; nil when the task is cancelled.
    public mutating func next() async throws -> DocumentSnapshot? {
      guard let snapshot = try await listening.next() else { return nil }
      return snapshot.documents.first
        ?? DocumentSnapshot(reference: reference, document: nil, readTime: snapshot.readTime)
    }
  }
}

/// One loop's listener, which ends when it is released.
final class Listening: Sendable {
  private let channel = AsyncThrowingChannel<QuerySnapshot, any Error>()
  private let task: Task<Void, Never>

  convenience init(to query: DocumentQuery) {
    self.init(query.firestore) { try WatchedTarget(query) }
  }

  convenience init(to reference: DocumentReference) {
    self.init(reference.firestore) { try WatchedTarget(reference) }
  }

  private init(_ firestore: Firestore, _ target: @escaping @Sendable () throws -> WatchedTarget) {
    let channel = channel
    task = Task {
      do {
        try await firestore.calls.listen(to: try target(), of: firestore) { await channel.send($0) }
        channel.finish()
      } catch is CancellationError {
        channel.finish()
      } catch {
        channel.fail(error)
      }
    }
  }

  deinit { task.cancel() }

  func next() async throws -> QuerySnapshot? {
    var iterator = channel.makeAsyncIterator()
    return try await iterator.next()
  }
}
