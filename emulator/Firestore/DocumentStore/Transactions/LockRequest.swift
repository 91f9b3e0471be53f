import DocumentModel
import Events
import QueryEngine

/// The owner of locks: a transaction, or one commit outside transactions.
///
/// Owners are ordered by age; a retry takes the age of the transaction it retries, which gives it
/// priority.
struct LockOwner: Sendable, Hashable, Comparable {
  /// When the owner first asked to begin; smaller is older.
  var age: UInt64
  /// Unique among all owners.
  var id: UInt64

  static func < (left: LockOwner, right: LockOwner) -> Bool {
    (left.age, left.id) < (right.age, right.id)
  }
}

/// How a document is held.
enum LockMode: Int, Sendable, Hashable, Comparable {
  /// Read; others may read it too.
  case shared
  /// Read, to be written soon: others may read it, but one alone holds this.
  case update
  case exclusive

  /// Whether two owners cannot hold a document like this at the same time.
  func conflicts(with other: LockMode) -> Bool {
    switch (self, other) {
    case (.exclusive, _), (_, .exclusive), (.update, .update): true
    case (.shared, _), (.update, .shared): false
    }
  }

  static func < (left: LockMode, right: LockMode) -> Bool { left.rawValue < right.rawValue }
}

/// The bytes that name what is locked: a document's key, a database's for a reset, or a line of
/// readers of one scope.
typealias LockKey = [UInt8]

/// What an owner asks for at once; all of it is granted together or none.
struct LockRequest: Sendable {
  /// The documents to lock, existing or not.
  var documents: [LockKey: LockMode] = [:]
  /// The ranges that queries have read; shared among readers.
  var ranges: [QueryRange] = []
  /// The changes a commit is about to make; they conflict with every range they enter or leave.
  var changes: [DocumentChange] = []
}

/// Everything a query's answer depends on: the documents that match it, present and future.
struct QueryRange: Sendable {
  var database: DatabaseName
  /// A document's path, or the empty path.
  var parent: ResourcePath
  /// Nil for every collection.
  var collectionID: String?
  /// Whether collections at any depth below the parent count.
  var allDescendants: Bool
  /// Whether a document of the scope passes the query's filter.
  ///
  /// Limits and cursors are left out, so that the range is never too narrow.
  var matches: @Sendable (FirestoreDocument) -> Bool = { _ in true }

  /// A range of document keys that contains the whole scope, and perhaps other documents.
  var keys: KeyRange {
    if let collectionID, !allDescendants {
      let collection = parent.appending(collectionID)
      return KeyRange(prefix: DocumentKeys.collectionPrefix(database, collection))
    }
    return KeyRange(prefix: DocumentKeys.descendantsPrefix(database, parent))
  }

  /// Where the readers of the scope form a line when they have aborted each other.
  var lineKey: LockKey {
    // No document's key begins or ends like this.
    [0xFF] + keys.from + [collectionID == nil ? 0 : 1, allDescendants ? 1 : 0]
      + Array((collectionID ?? "").utf8)
  }

  /// Whether a change can change what the query answers.
  func covers(_ change: DocumentChange) -> Bool {
    guard contains(change.name) else { return false }
    return change.before.map(matches) ?? false || change.after.map(matches) ?? false
  }

  /// Whether a document of this name is in the scope.
  func contains(_ name: DocumentName) -> Bool {
    guard name.database == database, name.path.segments.count > parent.segments.count,
      name.path.isBelowOrEqual(to: parent)
    else { return false }
    if let collectionID, !name.collectionID.utf8.elementsEqual(collectionID.utf8) { return false }
    return allDescendants || name.path.segments.count == parent.segments.count + 2
  }
}
