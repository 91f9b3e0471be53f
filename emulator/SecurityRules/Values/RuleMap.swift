package import DocumentModel

/// A map of the rules language.
package enum RuleMap: Sendable {
  /// The fields of a document or of a map in it, not converted yet.
  case fields(MapValue)
  /// A document as `resource` and `get` return it, with the members `data`, `id` and `__name__`.
  indirect case document(FirestoreDocument)
  /// A map created by rules or for them.
  case members(RuleMembers)

  /// Creates a map from names and values; names that differ in bytes are different.
  package init(_ members: some Sequence<(String, RuleValue)>) {
    self = .members(RuleMembers(members))
  }

  /// Creates a map from a dictionary.
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

  /// Indicates whether a key has a value, without converting the value.
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

  /// The keys in the order of their bytes.
  var keys: [String] {
    switch self {
    case .fields(let fields): fields.keys
    case .document: ["__name__", "data", "id"]
    case .members(let members): members.keys
    }
  }
}

/// Values by name; of two values with the same name, the later one counts.
package struct RuleMembers: Sendable {
  private struct Entry {
    var name: String
    var value: RuleValue
  }

  /// The entries, ordered by the bytes of their names; each name occurs once.
  private var entries: [Entry] = []

  init() {}

  init(_ members: some Sequence<(String, RuleValue)>) {
    // Among equal names, later entries come after earlier ones and then replace them.
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

  /// Returns the index of a name, or the index at which to insert it.
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

  /// The names in the order of their bytes.
  var keys: [String] { entries.map(\.name) }
}
