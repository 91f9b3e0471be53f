package import DocumentModel

/// A map of the rules language.
package enum RuleMap: Sendable {
  /// Of a document, not converted yet.
  case fields(MapValue)
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
    case .members(let members): members[key]
    }
  }

  var count: Int {
    switch self {
    case .fields(let fields): fields.count
    case .members(let members): members.count
    }
  }

  /// In the order of their bytes.
  var keys: [String] {
    switch self {
    case .fields(let fields): fields.keys
    case .members(let members): members.keys
    }
  }
}

/// Values by name; of two with one name the later counts.
package struct RuleMembers: Sendable {
  private var values: [ExactText: RuleValue] = [:]

  init(_ members: some Sequence<(String, RuleValue)> = []) {
    for (name, value) in members { values[ExactText(name)] = value }
  }

  subscript(name: String) -> RuleValue? {
    get { values[ExactText(name)] }
    set { values[ExactText(name)] = newValue }
  }

  var count: Int { values.count }

  /// In the order of their bytes.
  var keys: [String] {
    values.keys.map(\.text).sorted { ValueOrder.compareText($0, $1) == .less }
  }
}
