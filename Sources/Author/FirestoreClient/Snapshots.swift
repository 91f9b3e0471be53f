import AsyncAlgorithms

/// The documents of a query now and after every change, as an asynchronous sequence.
///
/// ```swift
/// let openChats = firestore.collection("chats").where("open", .equal, true)
/// for try await snapshot in openChats.snapshots() {
///   for change in snapshot.changes where change.kind == .added { greet(change.document) }
/// }
/// ```
///
/// Each snapshot shows the documents as of one moment. The changes of one commit arrive in one
/// snapshot. Documents have all their fields, whatever the query selects.
///
/// If the connection fails, listening resumes automatically from the last snapshot. While your code
/// handles a snapshot, further snapshots wait. If too many are waiting, they are combined into one
/// snapshot with all changes.
///
/// Each loop listens separately. It stops when its task is cancelled or when the loop is left.
/// Throws `FirestoreError` for permanent failures, as `DocumentQuery.get()` does.
public struct QuerySnapshots: AsyncSequence, Sendable {
  /// The documents as of one moment.
  public typealias Element = QuerySnapshot

  let query: DocumentQuery

  /// Starts to listen.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(listening: Listening(to: query))
  }

  /// The iterator of one loop, which listens until it is released.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let listening: Listening<QuerySnapshot>

    /// Waits for the next snapshot; returns nil if the task is cancelled.
    public mutating func next() async throws -> QuerySnapshot? { try await listening.next() }
  }
}

/// A document now and after every change, as an asynchronous sequence.
///
/// The sequence also has a snapshot if the document does not exist. In all other respects it works
/// like `QuerySnapshots`.
public struct DocumentSnapshots: AsyncSequence, Sendable {
  /// The document as of one moment.
  public typealias Element = DocumentSnapshot

  let reference: DocumentReference

  /// Starts to listen.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(reference: reference, listening: Listening(to: reference))
  }

  /// The iterator of one loop, which listens until it is released.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let reference: DocumentReference
    let listening: Listening<QuerySnapshot>

    /// Waits for the next snapshot; returns nil if the task is cancelled.
    public mutating func next() async throws -> DocumentSnapshot? {
      guard let snapshot = try await listening.next() else { return nil }
      return snapshot.documents.first
        ?? DocumentSnapshot(reference: reference, document: nil, readTime: snapshot.readTime)
    }
  }
}

/// The listener of one loop, which stops listening when it is released.
package final class Listening<Element: Sendable>: Sendable {
  private let channel = AsyncThrowingChannel<Element, any Error>()
  private let task: Task<Void, Never>

  /// Starts to listen; `listen` passes each element on and waits until it is read.
  package init(
    _ listen: @escaping @Sendable (@escaping @Sendable (Element) async -> Void) async throws -> Void
  ) {
    let channel = channel
    task = Task {
      do {
        try await listen { await channel.send($0) }
        channel.finish()
      } catch is CancellationError {
        channel.finish()
      } catch {
        channel.fail(error)
      }
    }
  }

  deinit { task.cancel() }

  package func next() async throws -> Element? {
    var iterator = channel.makeAsyncIterator()
    return try await iterator.next()
  }
}

extension Listening<QuerySnapshot> {
  convenience init(to query: DocumentQuery) {
    self.init(query.firestore) { try WatchedTarget(query) }
  }

  convenience init(to reference: DocumentReference) {
    self.init(reference.firestore) { try WatchedTarget(reference) }
  }

  private convenience init(
    _ firestore: Firestore,
    _ target: @escaping @Sendable () throws -> WatchedTarget
  ) {
    self.init { try await firestore.calls.listen(to: try target(), of: firestore, $0) }
  }
}
