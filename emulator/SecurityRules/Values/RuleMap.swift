package import DocumentModel

/// A map of the rules language.
package enum RuleMap: Sendable {
  /// Of a document, not converted yet.
  case fields(MapValue)
  /// A document as `resource` and `get` show it: its `data`, its `id` and its `__name__`.
  indirect case document(FirestoreDocument)
  /// Made by rules, or for them.
  case members(RuleMembers)

  /// A map that rules see; names that differ in bytes are different.
  package init(_ members: some Sequence<(String, RuleValue)>) {
    self = .members(RuleMembers(members))
  }

  /// A map that rules see.
  package static func entries(_ entries: [String: RuleValue]) -> RuleMap {
    RuleMap(entries.lazy.map { ($0.key, $0.value) })
  }

  package subscript(key: String) -> RuleValue? {
    switch self {
    case .fields(let fields): fields[key].map(RuleValue.init)
    case .document(let document):
      switch key {
      case "data": .map(.fields(document.fields))
      case "id": .string(document.name.id)
      case "__name__": .path(RulePath(document.name))
      default: nil
      }
    case .members(let members): members[key]
    }
  }

  /// Whether there is a value, which is not looked at.
  func contains(_ key: String) -> Bool {
    if case .fields(let fields) = self { fields[key] != nil } else { self[key] != nil }
  }

  var count: Int {
    switch self {
    case .fields(let fields): fields.count
    case .document: 3
    case .members(let members): members.count
    }
  }

  /// In the order of their bytes.
  var keys: [String] {
    switch self {
    case .fields(let fields): fields.keys
    case .document: ["__name__", "data", "id"]
    case .members(let members): members.keys
    }
  }
}

/// Values by name; of two with one name the later counts.
package struct RuleMembers: Sendable {
  private struct Entry {
    var name: String
    var value: RuleValue
  }

  /// Ascending by the bytes of their names, each name once.
  private var entries: [Entry] = []

  init() {}

  init(_ members: some Sequence<(String, RuleValue)>) {
    // Of equal names, later ones stay behind earlier ones, which they then replace.
    let sorted = members.enumerated().sorted { left, right in
      let order = ValueOrder.compareText(left.element.0, right.element.0)
      return order == .equal ? left.offset < right.offset : order == .less
    }
    for (_, entry) in sorted {
      if let last = entries.last, last.name.isIdentical(to: entry.0) { entries.removeLast() }
      entries.append(Entry(name: entry.0, value: entry.1))
    }
  }

  subscript(name: String) -> RuleValue? {
    get {
      let (place, isPresent) = place(of: name)
      return isPresent ? entries[place].value : nil
    }
    set {
      let (place, isPresent) = place(of: name)
      switch (newValue, isPresent) {
      case (let value?, true): entries[place].value = value
      case (let value?, false): entries.insert(Entry(name: name, value: value), at: place)
      case (nil, true): entries.remove(at: place)
      case (nil, false): break
      }
    }
  }

  /// Where a name stands, or where it would have to be put.
  private func place(of name: String) -> (place: Int, isPresent: Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      switch ValueOrder.compareText(entries[middle].name, name) {
      case .less: low = middle + 1
      case .equal: return (middle, true)
      case .greater: high = middle
      }
    }
    return (low, false)
  }

  var count: Int { entries.count }

  /// In the order of their bytes.
  var keys: [String] { entries.map(\.name) }
}
