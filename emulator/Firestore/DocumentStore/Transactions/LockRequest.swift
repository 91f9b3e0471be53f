import DocumentModel
import Events
import QueryEngine

/// An owner of locks: a transaction, or a single commit outside transactions.
///
/// Owners are ordered by age. A retry takes the age of the transaction it retries, which gives it
/// priority.
struct LockOwner: Sendable, Hashable, Comparable {
  /// The order in which owners first asked to begin; smaller is older.
  var age: UInt64
  /// The owner's unique ID.
  var id: UInt64

  static func < (left: LockOwner, right: LockOwner) -> Bool {
    (left.age, left.id) < (right.age, right.id)
  }
}

/// The mode in which a document is locked.
enum LockMode: Int, Sendable, Hashable, Comparable {
  /// For reading; other owners may also read.
  case shared
  /// For reading before a write: other owners may read, but only one owner can hold this mode.
  case update
  case exclusive

  /// Returns true if two owners cannot hold a document in these modes at the same time.
  func conflicts(with other: LockMode) -> Bool {
    switch (self, other) {
    case (.exclusive, _), (_, .exclusive), (.update, .update): true
    case (.shared, _), (.update, .shared): false
    }
  }

  static func < (left: LockMode, right: LockMode) -> Bool { left.rawValue < right.rawValue }
}

/// The bytes that identify a locked resource.
///
/// A document's key, a database's key for a reset, or the key of a queue of readers of one scope.
typealias LockKey = [UInt8]

/// A set of locks that an owner requests at once; they are granted together or not at all.
struct LockRequest: Sendable {
  /// The documents to lock, existing or not.
  var documents: [LockKey: LockMode] = [:]
  /// The ranges that queries have read; readers share them.
  var ranges: [QueryRange] = []
  /// The changes a commit is about to make.
  ///
  /// They conflict with every range that the changed documents enter or leave.
  var changes: [DocumentChange] = []
}

/// The range a query's result depends on: all documents, present or future, that match the query.
struct QueryRange: Sendable {
  var database: DatabaseName
  /// The path of a document, or the empty path.
  var parent: ResourcePath
  /// The ID of the collections in the range; nil for all collections.
  var collectionID: String?
  /// True if collections at any depth below the parent are in the range.
  var allDescendants: Bool
  /// Returns true if a document of the scope passes the query's filter.
  ///
  /// Ignores limits and cursors, so that the range is never too narrow.
  var matches: @Sendable (FirestoreDocument) -> Bool = { _ in true }

  /// A range of document keys that contains the whole scope, and possibly other documents.
  var keys: KeyRange {
    if let collectionID, !allDescendants {
      let collection = parent.appending(collectionID)
      return KeyRange(prefix: DocumentKeys.collectionPrefix(database, collection))
    }
    return KeyRange(prefix: DocumentKeys.descendantsPrefix(database, parent))
  }

  /// The key of the queue for readers of the scope that have aborted each other.
  var queueKey: LockKey {
    // No document's key begins with this byte.
    [0xFF] + keys.from + [collectionID == nil ? 0 : 1, allDescendants ? 1 : 0]
      + Array((collectionID ?? "").utf8)
  }

  /// Returns true if a change can change the query's result.
  func covers(_ change: DocumentChange) -> Bool {
    guard contains(change.name) else { return false }
    return change.before.map(matches) ?? false || change.after.map(matches) ?? false
  }

  /// Returns true if a document of this name is in the scope.
  func contains(_ name: DocumentName) -> Bool {
    guard name.database == database, name.path.segments.count > parent.segments.count,
      name.path.isBelowOrEqual(to: parent)
    else { return false }
    if let collectionID, !name.collectionID.utf8.elementsEqual(collectionID.utf8) { return false }
    return allDescendants || name.path.segments.count == parent.segments.count + 2
  }
}
