import DatabaseModel

/// The reader of rules: checks the structure of the JSON and compiles the expressions.
struct RulesReader {
  private let text: RulesText
  /// The number of the next expression.
  private var nextNumber = 0

  /// The path and the variables of a level.
  private struct Place {
    var path = ""
    var variables: [String] = []
  }

  static func read(_ text: RulesText) throws(DatabaseRulesError) -> RuleNode {
    var reader = RulesReader(text: text)
    return try reader.file(try PlacedJSON.parse(text))
  }

  private init(text: RulesText) {
    self.text = text
  }

  private mutating func file(_ json: PlacedJSON) throws(DatabaseRulesError) -> RuleNode {
    guard case .object(let members) = json.value else {
      throw text.error(at: json.offset, "Expected '{'.")
    }
    if let other = members.first(where: { $0.key != "rules" }) {
      throw text.error(at: other.offset, "Expected 'rules' property.")
    }
    try checkUnique(members)
    guard let rules = members.first else {
      throw text.error(at: json.last, "Expected 'rules' property.")
    }
    return try node(rules.value, Place())
  }

  private mutating func node(
    _ json: PlacedJSON,
    _ place: Place
  ) throws(DatabaseRulesError) -> RuleNode {
    guard case .object(let members) = json.value else {
      throw text.error(at: json.offset, "Expected '{'.")
    }
    try checkUnique(members)
    var rules: [Rule] = []
    var indexes: [String] = []
    var children: [DatabaseKey: RuleNode] = [:]
    var wildcard: RuleNode?
    for (offset, key, value) in members {
      if let kind = DatabaseRuleKind(rawValue: key) {
        rules.append(try rule(kind, value, place))
      } else if key == ".indexOn" {
        indexes = try self.indexes(value)
      } else if key.hasPrefix(".") {
        throw text.error(at: offset, "Unknown rule '\(key)'.")
      } else {
        var inner = Place(path: "\(place.path)/\(key)", variables: place.variables)
        let isVariable = key.hasPrefix("$")
        if isVariable { inner.variables.append(key) }
        let child = try node(value, inner)
        guard isVariable else {
          guard DatabaseKey.isValid(key) else {
            throw text.error(
              at: offset,
              "Invalid key '\(key)'. Key value can't be empty or contain $ # [ ] / or ."
            )
          }
          children[DatabaseKey(key)] = child
          continue
        }
        try checkVariable(key, at: offset, place, isFirst: wildcard == nil)
        wildcard = child
      }
    }
    return RuleNode(rules: rules, indexes: indexes, children: children, wildcard: wildcard)
  }

  private func checkUnique(
    _ members: [(offset: Int, key: String, value: PlacedJSON)]
  ) throws(DatabaseRulesError) {
    var keys: Set<DatabaseKey> = []
    for (offset, key, _) in members where !keys.insert(DatabaseKey(key)).inserted {
      throw text.error(at: offset, "Duplicate key '\(key)'.")
    }
  }

  private func checkVariable(
    _ name: String,
    at offset: Int,
    _ place: Place,
    isFirst: Bool
  ) throws(DatabaseRulesError) {
    let letters = name.unicodeScalars.dropFirst()
    guard !letters.isEmpty, letters.allSatisfy(ExpressionLexer.isNamePart) else {
      throw text.error(at: offset, "Invalid variable name '\(name)'.")
    }
    guard !place.variables.contains(name) else {
      throw text.error(at: offset, "Variable '\(name)' is already used by a level above.")
    }
    guard isFirst else {
      throw text.error(at: offset, "A level can have only one $ variable.")
    }
  }

  private func indexes(_ json: PlacedJSON) throws(DatabaseRulesError) -> [String] {
    let elements = if case .array(let elements) = json.value { elements } else { [json] }
    var entries: [String] = []
    for element in elements {
      guard case .string(let entry) = element.value else {
        throw text.error(at: element.offset, "Expected a string or an array of strings.")
      }
      guard entry == ".value" || DatabasePath(parsing: entry).map(\.isRoot) == false else {
        throw text.error(at: element.offset, "Invalid index '\(entry)'.")
      }
      entries.append(entry)
    }
    return entries
  }

  private mutating func rule(
    _ kind: DatabaseRuleKind,
    _ json: PlacedJSON,
    _ place: Place
  ) throws(DatabaseRulesError) -> Rule {
    let (line, column) = text.place(json.offset)
    var rule = Rule(
      kind: kind,
      path: place.path.isEmpty ? "/" : place.path,
      line: line,
      column: column,
      condition: Expression(.literal(.boolean(false)), type: .boolean, range: 0..<0)
    )
    switch json.value {
    case .boolean(let flag):
      rule.source = String(flag)
      rule.text = Array(rule.source.unicodeScalars)
      rule.condition = Expression(
        .literal(.boolean(flag)),
        type: .boolean,
        range: 0..<rule.text.count
      )
    case .string(let expression):
      rule.source = expression
      rule.text = Array(expression.unicodeScalars)
      rule.column += 1
      var parser = ExpressionParser(
        rule.text,
        variables: place.variables,
        hasNewData: kind != .read,
        firstNumber: nextNumber
      )
      do throws(ExpressionError) { rule.condition = try parser.parse() } catch {
        throw text.error(at: sourceOffset(of: error.offset, in: json), error.message)
      }
      nextNumber = parser.nextNumber
    default:
      throw text.error(at: json.offset, "Expected a string or a boolean.")
    }
    return rule
  }

  /// Returns the place in the file of a scalar of a string.
  private func sourceOffset(of scalar: Int, in json: PlacedJSON) -> Int {
    var offset = json.offset + 1
    for _ in 0..<scalar where offset < json.last {
      if text.json[offset] == UInt8(ascii: "\\") {
        let isUnit = text.json[offset + 1] == UInt8(ascii: "u")
        // The second half of a pair of surrogates is no scalar of its own.
        let isPair =
          isUnit && text.json[offset + 2] | 0x20 == UInt8(ascii: "d")
          && text.json[offset + 3] > UInt8(ascii: "7")
        offset += isPair ? 12 : isUnit ? 6 : 2
      } else {
        offset += 1
        while text.json[offset] & 0xC0 == 0x80 { offset += 1 }
      }
    }
    return min(offset, json.last)
  }
}
