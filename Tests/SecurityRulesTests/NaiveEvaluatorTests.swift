import DocumentModel
import Testing
import TestSupport

@testable import SecurityRules

@Suite("Random expressions")
struct NaiveEvaluatorTests {
  @Test("A plain second evaluator says the same of random expressions", arguments: 0..<20)
  func randomExpressions(seed: UInt64) throws {
    var writer = ExpressionWriter(random: SeededGenerator(seed: seed))
    var verdicts: [String: Int] = [:]
    for _ in 0..<200 {
      let text = writer.file()
      let verdict = try Self.verdict(of: text)
      let naive = NaiveEvaluator.verdict(of: try Parser.parse(SourceText(name: "", content: text)))
      verdicts[verdict, default: 0] += 1
      #expect(verdict == naive, "seed \(seed): \(text)")
    }
    // If most expressions failed, the comparison would test little.
    #expect(verdicts["allow", default: 0] > 20)
    #expect(verdicts["deny", default: 0] > 20)
    #expect(verdicts["error", default: 0] > 10)
  }

  private static func verdict(of text: String) throws -> String {
    let decision = try Ruleset(name: "f.rules", content: text).decide(
      RulesRequest(
        method: .get,
        path: [.known("a"), .known("x")],
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .null
      ),
      documents: NoDocuments(),
      ledger: AccessLedger(isSingle: true)
    )
    if decision.isAllowed { return "allow" }
    return decision.answers.last?.outcome == .isFalse ? "deny" : "error"
  }

  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { nil }
  }
}

/// A generator of expressions whose operands mostly have the right type.
private struct ExpressionWriter {
  enum Kind: CaseIterable {
    case bool, int, float, string, list, map
  }

  var random: SeededGenerator
  /// The names in scope with their types.
  private var names: [(name: String, kind: Kind)] = []

  init(random: SeededGenerator) { self.random = random }

  private mutating func number(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &random)
  }

  private mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }

  private mutating func one<T>(_ choices: [T]) -> T { choices[number(0...(choices.count - 1))] }

  mutating func file() -> String {
    // The second function may call the first.
    names = [("p", .int), ("q", .list)]
    var body = "let u = \(expression(.int, 2));"
    names.append(("u", .int))
    body += " let v = \(expression(.bool, 2));"
    names.append(("v", .bool))
    let first = "function f(p, q) { \(body) return \(expression(.bool, 3)); }"
    names = [("m", .map), ("q", .list)]
    let second = "function g(m, q) { return \(expression(.int, 3)); }"
    names = []
    let condition = expression(.bool, 5, calls: true)
    return "rules_version = '2'; service cloud.firestore { \(first) \(second) "
      + "match /a/{id} { allow get: if \(condition); } }"
  }

  mutating func expression(_ wanted: Kind, _ depth: Int, calls: Bool = false) -> String {
    let kind = chance(3) ? one(Kind.allCases) : wanted
    if depth <= 0 || chance(10) { return leaf(kind) }
    func below(_ kind: Kind, _ writer: inout ExpressionWriter) -> String {
      writer.expression(kind, depth - 1 - writer.number(0...1), calls: calls)
    }
    let text: String
    switch kind {
    case .bool:
      switch number(0...(calls ? 12 : 11)) {
      case 0: text = "!\(below(.bool, &self))"
      case 1: text = "\(below(.bool, &self)) && \(below(.bool, &self))"
      case 2: text = "\(below(.bool, &self)) || \(below(.bool, &self))"
      case 3:
        text = "\(below(.bool, &self)) && \(below(.bool, &self)) || \(below(.bool, &self))"
      case 4:
        let number: Kind = one([.int, .float])
        text =
          "\(below(.int, &self)) \(one(["<", "<=", ">", ">=", "==", "!="])) "
          + below(number, &self)
      case 5: text = "\(below(.string, &self)) \(one(["<", ">=", "=="])) \(below(.string, &self))"
      case 6:
        let kind: Kind = one([.int, .string, .list, .float])
        text = "\(below(kind, &self)) in \(below(.list, &self))"
      case 7: text = "\(below(.string, &self)) in \(below(.map, &self))"
      case 8:
        let type = one(["bool", "int", "float", "number", "string", "list", "map"])
        text = "\(below(one(Kind.allCases), &self)) is \(type)"
      case 9:
        let set = chance(30) ? ".toSet()" : ""
        let method = one(["hasAll", "hasAny", "hasOnly"])
        text = "\(below(.list, &self))\(set).\(method)(\(below(.list, &self)))"
      case 10:
        let kind = one(Kind.allCases)
        text = "\(below(kind, &self)) \(one(["==", "!="])) \(below(kind, &self))"
      case 11: text = choice(.bool, depth, calls)
      default: text = "f(\(below(.int, &self)), \(below(.list, &self)))"
      }
    case .int:
      switch number(0...(calls ? 5 : 4)) {
      case 0:
        text = "\(below(.int, &self)) \(one(["+", "-", "* ", "/ ", "% "])) \(below(.int, &self))"
      case 1: text = "\(below(one([.list, .map, .string]), &self)).size()"
      case 2: text = "-(\(below(.int, &self)))"
      case 3: text = "\(below(.list, &self)).concat([1, 2])[\(number(-1...3))]"
      case 4: text = choice(.int, depth, calls)
      default: text = "g(\(below(.map, &self)), \(below(.list, &self)))"
      }
    case .float:
      text =
        "\(below(.float, &self)) \(one(["+", "-", "* ", "/ ", "% "])) "
        + below(one([.int, .float]), &self)
    case .string:
      switch number(0...2) {
      case 0: text = "\(below(.string, &self)) + \(below(.string, &self))"
      case 1: text = "\(below(.string, &self))[\(number(0...2)):\(number(0...3))]"
      default: text = choice(.string, depth, calls)
      }
    case .list:
      switch number(0...5) {
      case 0: text = "[\(below(one(Kind.allCases), &self)), \(below(.int, &self))]"
      case 1: text = "\(below(.list, &self)).concat(\(below(.list, &self)))"
      case 2: text = "\(below(.list, &self)).removeAll(\(below(.list, &self)))"
      case 3: text = "\(below(.map, &self)).\(one(["keys", "values"]))()"
      case 4: text = "\(below(.list, &self))[\(number(0...1)):]"
      default: text = choice(.list, depth, calls)
      }
    case .map:
      switch number(0...3) {
      case 0, 1:
        text = "{'a': \(below(one(Kind.allCases), &self)), \(below(.string, &self)): 2}"
      case 2: text = "{'m': \(below(.map, &self))}.get(\(one(["'m'", "['m', 'a']", "'z'"])), {})"
      default: text = "{'m': \(below(.map, &self))}\(one([".m", "['m']"]))"
      }
    }
    return "(\(text))"
  }

  private mutating func choice(_ kind: Kind, _ depth: Int, _ calls: Bool) -> String {
    let condition = expression(.bool, depth - 1, calls: calls)
    let first = expression(kind, depth - 2, calls: calls)
    return "\(condition) ? \(first) : \(expression(kind, depth - 2, calls: calls))"
  }

  private mutating func leaf(_ kind: Kind) -> String {
    let known = names.filter { $0.kind == kind }
    if !known.isEmpty, chance(60) { return one(known).name }
    switch kind {
    case .bool: return one(["true", "false", "true", "false", "null"])
    case .int:
      return one(
        ["(0)", "(1)", "(2)", "(3)", "(-1)", "9223372036854775807 ", "(-9223372036854775808)"]
      )
    case .float: return one(["0.0", "1.0", "1.5", "2.0", "(0.0 / 0.0)", "(1.0 / 0)"])
    case .string: return one(["''", "'a'", "'b'", "'ab'", "'m'"])
    case .list: return one(["[]", "[1]", "[1, 2, 3]", "['a', 'b']", "[1.0, null]", "[[1], 'a']"])
    case .map: return one(["{}", "{'a': 1}", "{'a': {'b': 1}, 'b': 'a'}", "{'b': 1.0}"])
    }
  }
}
