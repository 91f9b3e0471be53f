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

  private struct Shelf: Sendable {
    var all: Set<ViewID> = []
    var byValue: [FieldPath: [[UInt8]: Set<ViewID>]] = [:]

    var isEmpty: Bool { all.isEmpty && byValue.isEmpty }
  }

  private var shelves: [Scope: Shelf] = [:]
  private var byName: [DocumentName: Set<ViewID>] = [:]

  mutating func insert(_ id: ViewID, _ query: PreparedQuery) {
    update(query) { shelf in
      guard let (path, keys) = query.equality else {
        shelf.all.insert(id)
        return
      }
      for key in keys { shelf.byValue[path, default: [:]][key, default: []].insert(id) }
    }
  }

  mutating func remove(_ id: ViewID, _ query: PreparedQuery) {
    update(query) { shelf in
      guard let (path, keys) = query.equality else {
        shelf.all.remove(id)
        return
      }
      for key in keys {
        shelf.byValue[path]?[key]?.remove(id)
        if shelf.byValue[path]?[key]?.isEmpty == true { shelf.byValue[path]?[key] = nil }
      }
      if shelf.byValue[path]?.isEmpty == true { shelf.byValue[path] = nil }
    }
  }

  private mutating func update(_ query: PreparedQuery, _ body: (inout Shelf) -> Void) {
    let scope = Scope(query)
    body(&shelves[scope, default: Shelf()])
    if shelves[scope]?.isEmpty == true { shelves[scope] = nil }
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
      guard let shelf = shelves[scope] else { continue }
      found.formUnion(shelf.all)
      for (path, views) in shelf.byValue {
        for document in [change.before, change.after] {
          guard let value = document?.fields[path] else { continue }
          if let matching = views[PreparedQuery.equalityKey(value)] { found.formUnion(matching) }
        }
      }
    }
    return found
  }
}
