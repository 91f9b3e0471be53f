@testable import SecurityRules

/// A simple second implementation of the rules language.
///
/// It counts no work, knows no queries, and represents every error as nil.
struct NaiveEvaluator {
  let functions: [String: FunctionSyntax]

  /// Evaluates the only `allow` of a file for a request that its condition does not use.
  static func verdict(of file: FileSyntax) -> String {
    let service = file.services[0]
    let functions = Dictionary(
      (file.functions + service.functions).map { ($0.name, $0) },
      uniquingKeysWith: { $1 }
    )
    guard let condition = service.matches[0].allows[0].condition else { return "allow" }
    switch NaiveEvaluator(functions: functions).value(condition, [:]) {
    case .bool(true): return "allow"
    case .bool(false): return "deny"
    default: return "error"
    }
  }

  /// Variables by name; the inner value is nil for variables whose evaluation failed.
  typealias Scope = [String: RuleValue?]

  func value(_ syntax: Syntax, _ scope: Scope) -> RuleValue? {
    switch syntax.kind {
    case .literal(let value): return value
    case .name(let name): return scope[name] ?? nil
    case .list(let elements): return all(elements, scope).map(RuleValue.list)
    case .map(let entries):
      var map: [String: RuleValue] = [:]
      for entry in entries {
        guard case .string(let key) = value(entry.key, scope), let inner = value(entry.value, scope)
        else { return nil }
        map[key] = inner
      }
      return .map(.entries(map))
    case .path: return nil
    case .not(let operand): return bool(operand, scope).map { .bool(!$0) }
    case .negative(let operand):
      switch value(operand, scope) {
      case .int(let number): return number == .min ? nil : .int(-number)
      case .float(let number): return .float(-number)
      default: return nil
      }
    case .and(let operands):
      let values = operands.map { bool($0, scope) }
      if values.contains(false) { return .bool(false) }
      return values.contains(nil) ? nil : .bool(true)
    case .or(let operands):
      let values = operands.map { bool($0, scope) }
      if values.contains(true) { return .bool(true) }
      return values.contains(nil) ? nil : .bool(false)
    case .choice(let condition, let first, let second):
      guard let holds = bool(condition, scope) else { return nil }
      return value(holds ? first : second, scope)
    case .typeTest(let operand, let type):
      return value(operand, scope).map { .bool(isType($0, type)) }
    case .binary(let operation, let left, let right):
      guard let a = value(left, scope), let b = value(right, scope) else { return nil }
      return binary(operation, a, b)
    case .member(let object, let name):
      guard case .map(let map) = value(object, scope) else { return nil }
      return map[name]
    case .index(let object, let index):
      guard let base = value(object, scope), let index = value(index, scope) else { return nil }
      switch (base, index) {
      case (.map(let map), .string(let key)): return map[key]
      case (.list(let list), .int(let place)):
        return place >= 0 && place < list.count ? list[Int(place)] : nil
      case (.string(let text), .int(let place)):
        return place >= 0 && place < text.count ? .string(String(Array(text)[Int(place)])) : nil
      default: return nil
      }
    case .slice(let object, let from, let to):
      guard let base = value(object, scope) else { return nil }
      let count: Int
      switch base {
      case .list(let list): count = list.count
      case .string(let text): count = text.count
      default: return nil
      }
      guard case .int(let start) = from.map({ value($0, scope) }) ?? .int(0),
        case .int(let end) = to.map({ value($0, scope) }) ?? .int(Int64(count)),
        start >= 0, start < count, end > 0, end <= count, start <= end
      else { return nil }
      switch base {
      case .list(let list): return .list(Array(list[Int(start)..<Int(end)]))
      case .string(let text): return .string(String(Array(text)[Int(start)..<Int(end)]))
      default: return nil
      }
    case .call(nil, let name, let arguments): return call(name, arguments, scope)
    case .call(let receiver?, let name, let arguments):
      guard let receiver = value(receiver, scope), let arguments = all(arguments, scope) else {
        return nil
      }
      return method(receiver, name, arguments)
    }
  }

  private func bool(_ syntax: Syntax, _ scope: Scope) -> Bool? {
    if case .bool(let bool) = value(syntax, scope) { bool } else { nil }
  }

  private func all(_ expressions: [Syntax], _ scope: Scope) -> [RuleValue]? {
    let values = expressions.compactMap { value($0, scope) }
    return values.count == expressions.count ? values : nil
  }

  private func call(_ name: String, _ arguments: [Syntax], _ scope: Scope) -> RuleValue? {
    guard let function = functions[name], function.parameters.count == arguments.count else {
      return nil
    }
    // An argument or variable that fails matters only when it is used.
    var inner: Scope = [:]
    for (parameter, argument) in zip(function.parameters, arguments) {
      inner.updateValue(value(argument, scope), forKey: parameter.name)
    }
    for binding in function.lets {
      inner.updateValue(value(binding.value, inner), forKey: binding.name)
    }
    return function.result.flatMap { value($0, inner) }
  }

  // MARK: Operators

  private func isType(_ value: RuleValue, _ type: String) -> Bool {
    switch (type, value) {
    case ("bool", .bool), ("int", .int), ("float", .float), ("string", .string), ("list", .list),
      ("map", .map), ("number", .int), ("number", .float):
      true
    default: false
    }
  }

  /// Equality within lists and maps, where an `int` never equals a `float`.
  private func same(_ a: RuleValue, _ b: RuleValue) -> Bool {
    switch (a, b) {
    case (.null, .null): return true
    case (.bool(let a), .bool(let b)): return a == b
    case (.int(let a), .int(let b)): return a == b
    case (.float(let a), .float(let b)): return a == b
    case (.string(let a), .string(let b)): return Array(a.utf8) == Array(b.utf8)
    case (.list(let a), .list(let b)):
      guard a.count == b.count else { return false }
      for place in a.indices where !same(a[place], b[place]) { return false }
      return true
    case (.map(let a), .map(let b)):
      guard a.keys == b.keys else { return false }
      for key in a.keys {
        guard let left = a[key], let right = b[key], same(left, right) else { return false }
      }
      return true
    // Sets are equal if each contains the elements of the other; numbers compare by value.
    case (.set(let a), .set(let b)):
      return a.elements.allSatisfy { element in b.elements.contains { equal($0, element) } }
        && b.elements.allSatisfy { element in a.elements.contains { equal($0, element) } }
    default: return false
    }
  }

  private func equal(_ a: RuleValue, _ b: RuleValue) -> Bool {
    switch (a, b) {
    case (.int(let a), .float(let b)): Double(a) == b
    case (.float(let a), .int(let b)): a == Double(b)
    default: same(a, b)
    }
  }

  private func binary(_ operation: BinaryOperator, _ a: RuleValue, _ b: RuleValue) -> RuleValue? {
    switch operation {
    case .equal: return .bool(equal(a, b))
    case .notEqual: return .bool(!equal(a, b))
    case .isIn:
      switch b {
      case .list(let list): return .bool(list.contains { same($0, a) })
      case .set(let set): return .bool(set.elements.contains { equal($0, a) })
      case .map(let map):
        guard case .string(let key) = a else { return nil }
        return .bool(map[key] != nil)
      default: return nil
      }
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      switch (a, b) {
      case (.int(let a), .int(let b)): return .bool(compare(operation, a, b))
      case (.string(let a), .string(let b)): return .bool(compare(operation, a, b))
      default:
        guard let a = double(a), let b = double(b) else { return nil }
        return .bool(compare(operation, a, b))
      }
    case .add:
      if case (.string(let a), .string(let b)) = (a, b) { return .string(a + b) }
      return arithmetic(a, b, { $0.addingReportingOverflow($1) }, { $0 + $1 })
    case .subtract:
      return arithmetic(a, b, { $0.subtractingReportingOverflow($1) }, { $0 - $1 })
    case .multiply:
      return arithmetic(a, b, { $0.multipliedReportingOverflow(by: $1) }, { $0 * $1 })
    case .divide:
      if case (.int, .int(0)) = (a, b) { return nil }
      if case (.int(.min), .int(-1)) = (a, b) { return a }
      return arithmetic(a, b, { ($0 / $1, false) }, { $0 / $1 })
    case .remainder:
      if case (.int, .int(0)) = (a, b) { return nil }
      if case (.int, .int(-1)) = (a, b) { return .int(0) }
      return arithmetic(a, b, { ($0 % $1, false) }, { $0.truncatingRemainder(dividingBy: $1) })
    }
  }

  private func compare<T: Comparable>(_ operation: BinaryOperator, _ a: T, _ b: T) -> Bool {
    switch operation {
    case .less: a < b
    case .lessOrEqual: a <= b
    case .greater: a > b
    default: a >= b
    }
  }

  private func arithmetic(
    _ a: RuleValue,
    _ b: RuleValue,
    _ whole: (Int64, Int64) -> (Int64, Bool),
    _ fraction: (Double, Double) -> Double
  ) -> RuleValue? {
    if case (.int(let a), .int(let b)) = (a, b) {
      let (result, overflows) = whole(a, b)
      return overflows ? nil : .int(result)
    }
    guard let a = double(a), let b = double(b) else { return nil }
    return .float(fraction(a, b))
  }

  private func double(_ value: RuleValue) -> Double? {
    switch value {
    case .int(let number): Double(number)
    case .float(let number): number
    default: nil
    }
  }

  // MARK: Methods

  private func method(
    _ receiver: RuleValue,
    _ name: String,
    _ arguments: [RuleValue]
  ) -> RuleValue? {
    switch (receiver, name, arguments.count) {
    case (.string(let text), "size", 0): return .int(Int64(text.utf8.count))
    case (.list(let list), "size", 0): return .int(Int64(list.count))
    case (.set(let set), "size", 0): return .int(Int64(set.elements.count))
    case (.map(let map), "size", 0): return .int(Int64(map.count))
    case (.map(let map), "keys", 0): return .list(map.keys.sorted().map(RuleValue.string))
    case (.map(let map), "values", 0): return .list(map.keys.sorted().compactMap { map[$0] })
    case (.map(let map), "get", 2): return get(map, arguments[0], arguments[1])
    case (.list(let list), "toSet", 0): return .set(RuleSet(list))
    case (.list(let list), "concat", 1):
      guard case .list(let other) = arguments[0] else { return nil }
      return .list(list + other)
    case (.list(let list), "removeAll", 1):
      guard case .list(let other) = arguments[0] else { return nil }
      return .list(list.filter { element in !other.contains { same($0, element) } })
    case (.list(let list), _, 1):
      guard case .list(let other) = arguments[0] else { return nil }
      return has(name, list, other, same)
    case (.set(let set), _, 1):
      switch arguments[0] {
      case .list(let other): return has(name, set.elements, other, equal)
      case .set(let other): return has(name, set.elements, other.elements, equal)
      default: return nil
      }
    default: return nil
    }
  }

  private func get(_ map: RuleMap, _ key: RuleValue, _ fallback: RuleValue) -> RuleValue? {
    switch key {
    case .string(let key): return map[key] ?? fallback
    case .list(let keys):
      var found = RuleValue.map(map)
      for key in keys {
        guard case .string(let key) = key else { return nil }
        guard case .map(let inner) = found, let next = inner[key] else { return fallback }
        found = next
      }
      return found
    default: return nil
    }
  }

  private func has(
    _ name: String,
    _ own: [RuleValue],
    _ given: [RuleValue],
    _ equal: (RuleValue, RuleValue) -> Bool
  ) -> RuleValue? {
    switch name {
    case "hasAll": .bool(given.allSatisfy { element in own.contains { equal($0, element) } })
    case "hasAny": .bool(given.contains { element in own.contains { equal($0, element) } })
    case "hasOnly": .bool(own.allSatisfy { element in given.contains { equal($0, element) } })
    default: nil
    }
  }
}
