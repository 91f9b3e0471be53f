import DatabaseModel
import DatabaseTree
import JSONText

/// The form of queries in messages.
///
/// `i` is the index, `sp` and `ep` are the bounds, `sn` and `en` their keys, `sin` and `ein` tell
/// whether they are inclusive; `l` is the limit and `vf` its side.
extension DatabaseQuery {
  /// Parses a query; nil for one that selects the whole node in the order of priorities.
  static func parse(wire tree: JSONTree?) throws(DatabaseError) -> DatabaseQuery? {
    guard let tree, !tree.isNull else { return nil }
    guard let members = tree.members else { throw .invalid("Invalid query: not an object") }
    guard !members.isEmpty else { return nil }
    var query = DatabaseQuery()
    if let index = tree["i"] { query.order = try order(index) }
    query.start = try query.bound(tree["sp"], tree["sn"], tree["sin"])
    query.end = try query.bound(tree["ep"], tree["en"], tree["ein"])
    if let limit = tree["l"] {
      guard let count = limit.integer, (1...limitMax).contains(count) else {
        throw .invalid("Invalid query: the limit must be a positive integer")
      }
      let side = tree["vf"]?.text
      query.limit = Limit(count, isFromEnd: side.map { $0 == "r" } ?? (query.start == nil))
    }
    return query == DatabaseQuery() ? nil : query
  }

  private static func order(_ index: JSONTree) throws(DatabaseError) -> Order {
    guard let text = index.text else { throw .invalid("Invalid query: the index must be a string") }
    switch text {
    case ".key": return .key
    case ".value": return .value
    case ".priority": return .priority
    default: return .child(try DatabasePath(clientText: text))
    }
  }

  /// Returns a bound; nil if there is none.
  private func bound(
    _ value: JSONTree?,
    _ name: JSONTree?,
    _ isInclusive: JSONTree?
  ) throws(DatabaseError) -> Bound? {
    guard let value else { return nil }
    var inclusive = true
    if case .boolean(false) = isInclusive { inclusive = false }
    var key: BoundKey?
    if let name, !name.isNull {
      guard let text = name.text else {
        throw .invalid("Invalid query: the key of a bound must be a string")
      }
      key = text.isEmpty ? nil : Self.key(text)
    }
    return try Bound(value, key: key, isInclusive: inclusive, in: order)
  }

  fileprivate static func key(_ text: String) -> BoundKey {
    switch text {
    case minName: .min
    case maxName: .max
    default: .key(DatabaseKey(text))
    }
  }

  /// The keys that clients write for a bound below and above all keys.
  private static let minName = "[MIN_NAME]"
  private static let maxName = "[MAX_NAME]"

  /// The JSON object of the query, as Firebase's JavaScript client writes it.
  var wireJSON: [UInt8] {
    var object = JSONObjectText()
    write(start, ["sp", "sn", "sin"], to: &object)
    write(end, ["ep", "en", "ein"], to: &object)
    if let limit {
      object.set("l", Int64(limit.count))
      object.set("vf", limit.isFromEnd ? "r" : "l")
    }
    switch order {
    case .priority: break
    case .key: object.set("i", ".key")
    case .value: object.set("i", ".value")
    case .child(let path): object.set("i", path.keys.joined(separator: "/"))
    }
    return object.bytes
  }

  private func write(_ bound: Bound?, _ names: [String], to object: inout JSONObjectText) {
    guard let bound else { return }
    let key = bound.key.map { key in
      switch key {
      case .min: Self.minName
      case .max: Self.maxName
      case .key(let key): key.text
      }
    }
    if order == .key {
      object.set(names[0], key)
    } else {
      var value: [UInt8] = []
      if case .leaf(let leaf) = bound.value {
        leaf.appendJSON(to: &value)
      } else {
        value = Array("null".utf8)
      }
      object.set(names[0], json: value)
      object.set(names[1], key)
    }
    object.set(names[2], bound.isInclusive)
  }
}

extension DatabaseQuery.Bound {
  /// Creates a bound from a JSON primitive; nil for the bound of all children.
  ///
  /// In the order by key the value is the key.
  init?(
    _ value: JSONTree,
    key: DatabaseQuery.BoundKey?,
    isInclusive: Bool,
    in order: DatabaseQuery.Order
  ) throws(DatabaseError) {
    let index: IndexValue
    switch value {
    case .null: index = .null
    case .boolean(let flag): index = .leaf(.boolean(flag))
    case .number(let number): index = .leaf(.number(number.double))
    case .string(let text): index = .leaf(.string(text))
    case .array, .object: throw .invalid("Constraint index field must be a JSON primitive")
    }
    guard order == .key else {
      self.init(index, key: key, isInclusive: isInclusive)
      return
    }
    switch (index, key) {
    case (.null, nil): return nil
    case (.leaf(.string(let text)), nil):
      self.init(.null, key: DatabaseQuery.key(text), isInclusive: isInclusive)
    default: throw .invalid("The bound of a query by key must be one string")
    }
  }
}
