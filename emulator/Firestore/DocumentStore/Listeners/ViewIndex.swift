import DocumentModel
import Events
import QueryEngine

/// An index of views that finds those a change may affect, at a cost proportional to their number.
///
/// Views are indexed by the collections they read. If their filter compares a field with a few
/// values, they are also indexed by those values.
struct ViewIndex: Sendable {
  typealias ViewID = UInt64

  private enum Scope: Hashable {
    case collection(DatabaseName, ResourcePath)
    case group(DatabaseName, String)
    case database(DatabaseName)

    init(_ query: PreparedQuery) {
      let database = query.query.database
      if let collection = query.collection {
        self = .collection(database, collection)
      } else if let id = query.query.collectionID {
        self = .group(database, id)
      } else {
        self = .database(database)
      }
    }
  }

  private struct Bucket: Sendable {
    var all: Set<ViewID> = []
    var byValue: [FieldPath: [[UInt8]: Set<ViewID>]] = [:]

    var isEmpty: Bool { all.isEmpty && byValue.isEmpty }
  }

  private var buckets: [Scope: Bucket] = [:]
  private var byName: [DocumentName: Set<ViewID>] = [:]

  mutating func insert(_ id: ViewID, _ query: PreparedQuery) {
    update(query) { bucket in
      guard let (path, keys) = query.equality else {
        bucket.all.insert(id)
        return
      }
      for key in keys { bucket.byValue[path, default: [:]][key, default: []].insert(id) }
    }
  }

  mutating func remove(_ id: ViewID, _ query: PreparedQuery) {
    update(query) { bucket in
      guard let (path, keys) = query.equality else {
        bucket.all.remove(id)
        return
      }
      for key in keys {
        bucket.byValue[path]?[key]?.remove(id)
        if bucket.byValue[path]?[key]?.isEmpty == true { bucket.byValue[path]?[key] = nil }
      }
      if bucket.byValue[path]?.isEmpty == true { bucket.byValue[path] = nil }
    }
  }

  private mutating func update(_ query: PreparedQuery, _ body: (inout Bucket) -> Void) {
    let scope = Scope(query)
    body(&buckets[scope, default: Bucket()])
    if buckets[scope]?.isEmpty == true { buckets[scope] = nil }
  }

  mutating func insert(_ id: ViewID, _ names: [DocumentName]) {
    for name in names { byName[name, default: []].insert(id) }
  }

  mutating func remove(_ id: ViewID, _ names: [DocumentName]) {
    for name in names {
      byName[name]?.remove(id)
      if byName[name]?.isEmpty == true { byName[name] = nil }
    }
  }

  /// Returns the views that may contain the document before or after a change, and possibly others.
  func views(for change: DocumentChange) -> Set<ViewID> {
    let name = change.name
    var found = byName[name] ?? []
    let scopes: [Scope] = [
      .collection(name.database, name.collection), .group(name.database, name.collectionID),
      .database(name.database),
    ]
    for scope in scopes {
      guard let bucket = buckets[scope] else { continue }
      found.formUnion(bucket.all)
      for (path, views) in bucket.byValue {
        for document in [change.before, change.after] {
          guard let value = document?.fields[path] else { continue }
          if let matching = views[PreparedQuery.equalityKey(value)] { found.formUnion(matching) }
        }
      }
    }
    return found
  }
}
