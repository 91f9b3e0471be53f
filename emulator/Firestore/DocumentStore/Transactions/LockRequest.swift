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
enum LockMode: Sendable, Hashable {
  case shared
  case exclusive
}

/// The bytes that name what is locked: a document's key, or a database's for a reset.
typealias LockKey = [UInt8]

/// What an owner asks for at once; all of it is granted together or none.
struct LockRequest: Sendable {
  /// The documents to lock, existing or not.
  var documents: [LockKey: LockMode] = [:]
  /// The ranges that queries have read; shared among readers.
  var ranges: [QueryRange] = []
  /// The changes a commit is about to make; they conflict with every range they enter or leave.
  var changes: [DocumentChange] = []
  /// Whether this is for a read: its locks stay when a commit gives back its own.
  var isRead = false
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
