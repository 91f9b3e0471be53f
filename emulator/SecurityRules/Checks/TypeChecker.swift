import Identifiers

/// A checker that warns about operations whose operands never have the required types.
///
/// It takes types from literals, wildcards, documented members of `request` and `resource`, and the
/// results of functions, methods and operators. The types of document fields are unknown. A
/// parameter has the types that all of its uses in the function accept. All issues are warnings:
/// another part of the condition may allow the request even if one part cannot be evaluated.
struct TypeChecker {
  /// The properties of a function in the file that its callers need.
  private struct Function {
    /// The types of each parameter that all of its uses accept.
    var parameters: [TypeSet]
    var result: TypeSet
    /// The index of the parameter that the function returns unchanged; nil if there is none.
    var returned: Int?
  }

  /// The context of type lookups: the conditions of one match, or one function.
  private struct Frame {
    var captures: [TypeSet]
    var locals: [Local] = []
    /// The names of the parameters.
    var names: [String] = []
  }

  /// A parameter, or a variable with its value.
  private struct Local {
    var types = TypeSet.any
    var value: Expression?
    /// The index of the parameter that this variable is or equals; nil for other variables.
    var parameter: Int?
    /// For a parameter, the types that all uses so far accept.
    var accepted = TypeSet.any
    var firstUse: SourceRange?
  }

  private let service: Ruleset.Service
  private let places: [ObjectIdentifier: SourceRange]
  private var functions: [Function?]
  private var frame = Frame(captures: [])
  private(set) var issues: [RulesIssue] = []
  private var reported: Set<RulesIssue> = []

  init(service: Ruleset.Service, functionCount: Int, places: [ObjectIdentifier: SourceRange]) {
    self.service = service
    self.places = places
    functions = Array(repeating: nil, count: functionCount)
  }

  /// Checks a condition, which must have a Boolean value.
  mutating func check(_ condition: Expression, captures: [TypeSet]) {
    frame = Frame(captures: captures)
    if case .choice = condition.kind { return check(condition, .bool) }
    let types = types(of: condition)
    guard types.isDisjoint(with: .bool) else { return verify(condition, types, .bool) }
    warn(
      "Invalid type. Permission statements expect a boolean value. "
        + "Received one of \(types.description).",
      condition
    )
  }

  /// Checks the body of a function whose callees were checked before.
  mutating func check(
    _ function: CompiledFunction,
    _ number: Int,
    names: [String],
    captures: [TypeSet]
  ) {
    frame = Frame(captures: captures, names: names)
    frame.locals = names.indices.map { Local(parameter: $0) }
    for value in function.lets {
      var local = Local(types: types(of: value), value: value)
      if case .local(let place) = value.kind { local.parameter = frame.locals[place].parameter }
      frame.locals.append(local)
    }
    let result = types(of: function.result)
    functions[number] = Function(
      parameters: frame.locals.prefix(names.count).map(\.accepted),
      result: result,
      returned: parameter(givenBy: function.result)
    )
  }

  /// Returns the index of the parameter that an expression returns unchanged.
  ///
  /// The parameter may pass through other functions.
  private func parameter(givenBy expression: Expression) -> Int? {
    switch expression.kind {
    case .local(let place): return frame.locals[place].parameter
    case .call(let number, let arguments):
      guard let returned = functions[number]?.returned, returned < arguments.count else {
        return nil
      }
      return parameter(givenBy: arguments[returned])
    default: return nil
    }
  }

  private mutating func warn(_ description: String, _ expression: Expression) {
    warn(description, place(of: expression))
  }

  private mutating func warn(_ description: String, _ range: SourceRange) {
    let issue = RulesIssue(severity: .warning, range: range, description: description)
    // A variable with a wrong value would be reported for each of its uses; it is reported once.
    if reported.insert(issue).inserted { issues.append(issue) }
  }

  private func place(of expression: Expression) -> SourceRange {
    places[ObjectIdentifier(expression)] ?? expression.range
  }

  // MARK: Required types

  private mutating func check(_ expression: Expression, _ accepted: TypeSet) {
    if case .choice(let condition, let first, let second) = expression.kind {
      check(condition, .bool)
      check(first, accepted)
      check(second, accepted)
    } else {
      verify(expression, types(of: expression), accepted)
    }
  }

  /// Compares the types of an expression with the types that its context accepts.
  private mutating func verify(_ expression: Expression, _ types: TypeSet, _ accepted: TypeSet) {
    switch expression.kind {
    case .local(let place):
      if let parameter = frame.locals[place].parameter {
        return narrow(parameter, accepted, expression)
      }
      if let value = frame.locals[place].value { return report(value, types, accepted) }
    case .call(let number, let arguments):
      if let returned = functions[number]?.returned {
        return verify(arguments[returned], types, accepted)
      }
    default: break
    }
    report(expression, types, accepted)
  }

  private mutating func report(_ expression: Expression, _ types: TypeSet, _ accepted: TypeSet) {
    guard types.isDisjoint(with: accepted) else { return }
    warn(
      "Invalid type. Received one of \(types.description). "
        + "Expected one of \(accepted.description).",
      expression
    )
  }

  /// Records a use of a parameter and warns if no type satisfies all uses of it.
  private mutating func narrow(_ parameter: Int, _ accepted: TypeSet, _ use: Expression) {
    let first = frame.locals[parameter].firstUse ?? place(of: use)
    frame.locals[parameter].firstUse = first
    let before = frame.locals[parameter].accepted
    let after = before.intersection(accepted)
    frame.locals[parameter].accepted = after.isEmpty ? before : after
    guard after.isEmpty else { return }
    warn(
      "Invalid type. There is no type for variable '\(frame.names[parameter])' that satisfies all "
        + "clauses.",
      first
    )
  }

  // MARK: Types of expressions

  private mutating func types(of expression: Expression) -> TypeSet {
    switch expression.kind {
    case .literal(let value): return Self.types(of: value)
    case .request: return .map
    case .resource: return [.map, .null]
    case .capture(let place): return frame.captures[place]
    case .local(let place): return frame.locals[place].types
    case .unknownName, .unknownFunction: return .any
    case .list(let elements):
      for element in elements { _ = types(of: element) }
      return .list
    case .map(let entries):
      for entry in entries {
        check(entry.key, .string)
        _ = types(of: entry.value)
      }
      return .map
    case .path(let parts):
      for case .value(let value) in parts { _ = types(of: value) }
      return .path
    case .not(let operand):
      check(operand, .bool)
      return .bool
    case .negative(let operand):
      check(operand, [.number, .duration])
      return [.number, .duration]
    case .binary(let operation, let left, let right):
      return types(operation, left, right, expression)
    case .and(let operands), .or(let operands):
      for operand in operands { check(operand, .bool) }
      return .bool
    case .typeTest(let operand, _):
      _ = types(of: operand)
      return .bool
    case .choice(let condition, let first, let second):
      check(condition, .bool)
      return types(either: first, or: second, expression)
    case .member(let object, let name): return member(name, of: object, expression)
    case .call(let number, let arguments): return call(number, arguments)
    case .global(let function, let arguments):
      return apply(TypeSignature.global(function), arguments)
    case .packaged(let package, let name, let arguments):
      guard let signature = TypeSignature.packaged[package]?[name] else { return .any }
      return apply(signature, arguments)
    case .method(let receiver, let name, let arguments):
      return method(name, of: receiver, arguments)
    case .index(let object, let index):
      check(object, [.string, .list, .map, .path])
      check(index, [.int, .string])
      return .any
    case .slice(let object, from: let from, to: let to):
      check(object, [.string, .list, .path])
      for bound in [from, to].compactMap(\.self) { check(bound, [.null, .int]) }
      return [.string, .list, .path]
    }
  }

  private static func types(of value: RuleValue) -> TypeSet {
    switch value {
    case .null: .null
    case .bool: .bool
    case .int: .int
    case .float: .float
    case .string: .string
    case .bytes: .bytes
    default: .any
    }
  }

  private mutating func types(
    _ operation: BinaryOperator,
    _ left: Expression,
    _ right: Expression,
    _ expression: Expression
  ) -> TypeSet {
    func both(_ accepted: TypeSet) -> TypeSet {
      check(left, accepted)
      check(right, accepted)
      return accepted
    }
    switch operation {
    case .add: return both([.number, .string, .duration, .timestamp])
    case .subtract: return both([.number, .duration, .timestamp])
    case .multiply, .divide, .remainder: return both(.number)
    case .isIn:
      _ = types(of: left)
      check(right, [.list, .set, .map, .constraint])
    case .equal, .notEqual:
      let (first, second) = (types(of: left), types(of: right))
      guard !first.isComparable(with: second) else { break }
      warn(
        "The sub-expressions are not comparable, so this comparison will always return "
          + "\(operation == .notEqual).",
        expression
      )
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      let (first, second) = (types(of: left), types(of: right))
      guard !first.isComparable(with: second) else { break }
      warn(
        "The sub-expressions cannot be ordered: \(first.description) "
          + "\(operation.rawValue) \(second.description).",
        expression
      )
    }
    return .bool
  }

  private mutating func types(
    either first: Expression,
    or second: Expression,
    _ expression: Expression
  ) -> TypeSet {
    let (first, second) = (types(of: first), types(of: second))
    if !first.isComparable(with: second) {
      warn(
        "Ternary operator result if condition is true has a different type than if condition is "
          + "false.",
        expression
      )
    }
    return first.union(second)
  }

  private mutating func apply(
    _ signature: TypeSignature,
    _ arguments: [Expression]
  ) -> TypeSet {
    for (number, argument) in arguments.enumerated() {
      check(argument, number < signature.arguments.count ? signature.arguments[number] : .any)
    }
    return signature.result
  }

  private mutating func method(
    _ name: String,
    of receiver: Expression,
    _ arguments: [Expression]
  ) -> TypeSet {
    guard let signature = TypeSignature.methods[name] else {
      _ = types(of: receiver)
      for argument in arguments { _ = types(of: argument) }
      return .any
    }
    check(receiver, signature.receiver)
    return apply(signature, arguments)
  }

  private mutating func call(_ number: Int, _ arguments: [Expression]) -> TypeSet {
    var given: [TypeSet] = []
    for argument in arguments { given.append(types(of: argument)) }
    guard let function = functions[number] else { return .any }
    for (place, argument) in arguments.enumerated() where place < function.parameters.count {
      verify(argument, given[place], function.parameters[place])
    }
    if let returned = function.returned, returned < given.count { return given[returned] }
    return function.result
  }

  // MARK: Members

  private mutating func member(
    _ name: String,
    of object: Expression,
    _ expression: Expression
  ) -> TypeSet {
    check(object, .map)
    guard let members = members(of: object) else { return .any }
    if let types = members[name] { return types }
    var description = "Invalid member name: \(name)."
    if let meant = NearestName.of(name, among: members.keys.sorted(), takesBeginning: false) {
      description += " Did you mean '\(meant)'?"
    }
    let range = place(of: expression)
    issues.append(
      RulesIssue(severity: .warning, range: range, description: description, isUnknownName: true)
    )
    return .any
  }

  /// Returns the members of an object with a fixed set of members; nil for other objects.
  private func members(of object: Expression) -> [String: TypeSet]? {
    switch object.kind {
    case .request: return Self.request
    case .resource: return service == .storage ? Self.storedObject : Self.document
    case .member(let outer, let name):
      guard case .request = outer.kind else { return nil }
      if name == "auth" { return Self.auth }
      guard name == "resource" else { return nil }
      return service == .storage ? Self.storedObject : Self.document
    default: return nil
    }
  }

  /// The members of `request`.
  ///
  /// `auth` is null without a user, and members that a method does not have are null. Rules compare
  /// them with null.
  private static let request: [String: TypeSet] = [
    "auth": [.map, .null], "method": .string, "path": .path, "time": .timestamp,
    "resource": [.map, .null], "query": [.map, .null], "params": .any,
  ]
  private static let auth: [String: TypeSet] = ["uid": [.string, .null], "token": [.map, .null]]
  private static let document: [String: TypeSet] = [
    "data": [.map, .null], "id": [.string, .null], "__name__": [.path, .null],
  ]
  private static let storedObject: [String: TypeSet] = [
    "name": [.string, .null], "bucket": [.string, .null], "size": [.int, .null],
    "generation": .any, "metageneration": .any, "timeCreated": [.timestamp, .null],
    "updated": [.timestamp, .null], "md5Hash": .any, "crc32c": .any, "etag": .any,
    "contentType": [.string, .null], "contentDisposition": .any, "contentEncoding": .any,
    "contentLanguage": .any, "cacheControl": .any, "metadata": [.map, .null],
  ]
}
