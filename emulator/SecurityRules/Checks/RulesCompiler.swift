import Identifiers
import LinearRegex

/// The compiler that resolves the names of a rules file and reports its errors and warnings.
struct RulesCompiler {
  /// The number of issues up to which a warning suggests a similar known name.
  private static let suggestionsMax = 100

  /// The meaning of names at one point of the file.
  private struct Scope {
    /// The wildcards of the enclosing matches, outermost first.
    var captures: [String] = []
    /// The types of the wildcards: string, or path for a recursive wildcard.
    var captureTypes: [TypeSet] = []
    /// The functions by name, one dictionary per block, outermost block first.
    var functions: [[String: Int]] = []
    /// The indices of parameters and `let`s by name.
    var locals: [String: Int] = [:]
    var matchDepth = 0
    var segments = 0
    var globs = 0

    func function(_ name: String) -> Int? {
      for block in functions.reversed() { if let number = block[name] { return number } }
      return nil
    }
  }

  private struct Declaration {
    var syntax: FunctionSyntax
    var compiled: CompiledFunction?
    var captureTypes: [TypeSet] = []
    var calls: Set<Int> = []
    var isUsed = false
  }

  private let version: Int
  private let service: Ruleset.Service
  private(set) var issues: [RulesIssue] = []
  private var expressionCount = 0
  private var declarations: [Declaration] = []
  /// The index of the function whose body is being compiled.
  private var current: Int?
  private var usedLocals: Set<String> = []
  /// The positions reported for issues about the value of an expression.
  ///
  /// A discarded expression may leave its entry behind. A later expression at the same memory
  /// address replaces the entry.
  private var places: [ObjectIdentifier: SourceRange] = [:]
  /// The conditions of the file, with the types of the wildcards that enclose each condition.
  private var conditions: [(condition: Expression, captureTypes: [TypeSet])] = []

  init(version: Int, service: Ruleset.Service) {
    self.version = version
    self.service = service
  }

  /// The functions of the file, ordered by index.
  var functions: [CompiledFunction] { declarations.compactMap(\.compiled) }

  /// Warns about the old language version and about unknown services.
  mutating func checkServices(_ file: FileSyntax) {
    if version == 1 {
      warn(
        "Ruleset uses old version (version [1]). Please update to the latest version "
          + "(version [2]).",
        SourceRange(line: 1, column: 1, offset: 0, endOffset: 0)
      )
    }
    let known = [Ruleset.Service.firestore, .storage].map(\.rawValue)
    for service in file.services where !known.contains(service.name) {
      warn(unknown: "service", service.name, service.range, nearest: known)
    }
  }

  /// Compiles one service and the functions declared outside of services.
  mutating func compile(_ file: FileSyntax, _ service: ServiceSyntax) -> [CompiledMatch] {
    var scope = Scope()
    declare(file.functions, &scope)
    declare(service.functions, &scope)
    let matches = service.matches.map { compile($0, scope) }
    if let depths = callDepths() { checkTypes(depths) }
    for declaration in declarations where !declaration.isUsed {
      warn("Unused function: \(declaration.syntax.name).", declaration.syntax.range)
    }
    return matches
  }

  /// Warns about an unknown name and suggests the most similar known name.
  private mutating func warn(
    unknown kind: String,
    _ name: String,
    _ range: SourceRange,
    nearest candidates: @autoclosure () -> [String]
  ) {
    var description = "Invalid \(kind) name: \(name)."
    // A file with more wrong names than this has a problem other than misspelled names.
    if issues.count < Self.suggestionsMax,
      let meant = NearestName.of(name, among: candidates(), takesBeginning: false)
    {
      description += " Did you mean '\(meant)'?"
    }
    issues.append(
      RulesIssue(severity: .warning, range: range, description: description, isUnknownName: true)
    )
  }

  private mutating func fail(_ description: String, _ range: SourceRange) {
    issues.append(RulesIssue(severity: .error, range: range, description: description))
  }

  private mutating func warn(_ description: String, _ range: SourceRange) {
    issues.append(RulesIssue(severity: .warning, range: range, description: description))
  }

  // MARK: Blocks

  private mutating func compile(_ match: MatchSyntax, _ outer: Scope) -> CompiledMatch {
    var scope = outer
    scope.matchDepth += 1
    scope.segments += match.path.count
    var globs = 0
    for (place, part) in match.path.enumerated() {
      guard let (name, range) = part.wildcard else { continue }
      refusePackage(name, range)
      if case .glob = part {
        globs += 1
        if version == 1, place != match.path.count - 1 {
          fail(
            "Invalid glob match expression. Glob matches are permitted as the last segment in a "
              + "match declaration path.",
            range
          )
        }
      }
      if scope.captures.dropFirst(outer.captures.count).contains(name) {
        fail("Variable \(name) already exists in the PathTemplate.", range)
      }
      scope.captures.append(name)
      if case .glob = part {
        scope.captureTypes.append(.path)
      } else {
        scope.captureTypes.append(.string)
      }
    }
    scope.globs += globs
    if scope.globs > 1, globs > 0 {
      fail(
        "Invalid glob match expression. Only one glob match is permitted in a match declaration "
          + "path.",
        match.range
      )
    }
    if scope.matchDepth > RulesLimits.matchDepthMax + 1 {
      fail(
        "Maximum allowed resource rule depth of \(RulesLimits.matchDepthMax) is reached.",
        match.range
      )
    }
    if scope.segments > RulesLimits.segmentsMax {
      fail("Maximum allowed path length of \(RulesLimits.segmentsMax) is reached.", match.range)
    }
    if scope.captures.count > RulesLimits.capturesMax {
      fail(
        "Maximum allowed amount of \(RulesLimits.capturesMax) match field variables is reached.",
        match.range
      )
    }
    declare(match.functions, &scope)
    let allows = match.allows.map { allow in
      for method in allow.unknownMethods {
        warn(
          unknown: "method",
          method.name,
          method.range,
          nearest: AccessMethod.allCases.map(\.rawValue) + ["read", "write"]
        )
      }
      let condition = allow.condition.map { compile($0, scope) }
      if let condition { conditions.append((condition, scope.captureTypes)) }
      return CompiledAllow(methods: allow.methods, condition: condition, range: allow.range)
    }
    return CompiledMatch(
      path: match.path,
      allows: allows,
      matches: match.matches.map { compile($0, scope) }
    )
  }

  /// The names of packages, which are not allowed as variable names.
  ///
  /// `firestore` is an exception.
  private static let packages: Set<String> = [
    "duration", "hashing", "latlng", "math", "timestamp", "firestore",
  ]

  private mutating func refusePackage(_ name: String, _ range: SourceRange) {
    guard Self.packages.contains(name), name != "firestore" else { return }
    fail("\(name) is a package and cannot be used as variable name.", range)
  }

  /// Adds the functions of a block to the scope and compiles them.
  private mutating func declare(_ functions: [FunctionSyntax], _ scope: inout Scope) {
    var names: [String: Int] = [:]
    let first = declarations.count
    for function in functions {
      if let known = names[function.name] {
        fail("Function \(function.name) is already defined.", function.range)
        declarations[known].isUsed = true
      }
      names[function.name] = declarations.count
      declarations.append(Declaration(syntax: function))
    }
    scope.functions.append(names)
    for (index, function) in functions.enumerated() {
      declarations[first + index].compiled = compile(function, first + index, scope)
      declarations[first + index].captureTypes = scope.captureTypes
    }
  }

  private mutating func compile(
    _ function: FunctionSyntax,
    _ number: Int,
    _ outer: Scope
  ) -> CompiledFunction {
    (current, usedLocals) = (number, [])
    defer { current = nil }
    var scope = outer
    scope.locals = [:]
    if function.parameters.count > RulesLimits.parametersMax {
      fail(
        "Maximum allowed function arguments of \(RulesLimits.parametersMax) for function "
          + "\(function.name) is reached.",
        function.range
      )
    }
    if version == 1, let first = function.lets.first {
      fail("Let bindings are not allowed in rules_version=\"1\";.", first.range)
    }
    if function.lets.count > RulesLimits.letsMax {
      warn(
        "A function can have at most \(RulesLimits.letsMax) variables, by the documentation.",
        function.range
      )
    }
    for parameter in function.parameters { bind(parameter.name, parameter.range, &scope) }
    var lets: [Expression] = []
    for binding in function.lets {
      let value = compile(binding.value, scope)
      lets.append(value)
      bind(binding.name, binding.range, &scope)
    }
    let result =
      function.result.map { compile($0, scope) } ?? numbered(.literal(.null), function.range)
    let names = function.parameters + function.lets.map { ($0.name, $0.range) }
    for (name, range) in names where !usedLocals.contains(name) {
      warn("Unused variable: \(name).", range)
    }
    return CompiledFunction(
      name: function.name,
      parameterCount: function.parameters.count,
      lets: lets,
      result: result
    )
  }

  private mutating func bind(_ name: String, _ range: SourceRange, _ scope: inout Scope) {
    refusePackage(name, range)
    if scope.locals[name] != nil {
      fail("The identifier [\(name)] is already bound in the current scope.", range)
    }
    scope.locals[name] = scope.locals.count
  }

  /// Returns the depth of the calls below each function.
  ///
  /// Returns nil if a function calls itself, directly or indirectly, which is reported as an error.
  private mutating func callDepths() -> [Int]? {
    // 0: not visited, 1: in progress, 2: done.
    var states = Array(repeating: 0, count: declarations.count)
    var refused: [Int] = []
    var depths = states
    func visit(_ number: Int, _ declarations: [Declaration]) {
      // An explicit stack of calls and the calls left to visit, because recursion could be too
      // deep.
      var way = [(number: number, rest: Array(declarations[number].calls).sorted())]
      states[number] = 1
      while var last = way.popLast() {
        guard let next = last.rest.popLast() else {
          states[last.number] = 2
          let below = declarations[last.number].calls.map { depths[$0] }.max() ?? -1
          depths[last.number] = below + 1
          continue
        }
        way.append(last)
        if states[next] == 1 { refused.append(next) }
        if states[next] == 0 {
          states[next] = 1
          way.append((next, Array(declarations[next].calls).sorted()))
        }
      }
    }
    for number in declarations.indices where states[number] == 0 { visit(number, declarations) }
    for number in Set(refused).sorted() {
      fail("Recursive call is not allowed.", declarations[number].syntax.range)
    }
    guard refused.isEmpty else { return nil }
    for number in declarations.indices where depths[number] > RulesLimits.callDepthMax {
      fail(
        "Maximum allowed call depth of \(RulesLimits.callDepthMax) is reached for "
          + "[\(declarations[number].syntax.name)] call stack.",
        declarations[number].syntax.range
      )
    }
    return depths
  }

  /// Warns about values whose types never match.
  ///
  /// Checks each function before its callers.
  private mutating func checkTypes(_ depths: [Int]) {
    var checker = TypeChecker(service: service, functionCount: declarations.count, places: places)
    for number in declarations.indices.sorted(by: { depths[$0] < depths[$1] }) {
      let declaration = declarations[number]
      guard let function = declaration.compiled else { continue }
      checker.check(
        function,
        number,
        names: declaration.syntax.parameters.map(\.name),
        captures: declaration.captureTypes
      )
    }
    for (condition, captures) in conditions { checker.check(condition, captures: captures) }
    issues += checker.issues
  }

  // MARK: Expressions

  private mutating func compile(_ syntax: Syntax, _ scope: Scope) -> Expression {
    let kind = kind(syntax, scope)
    let expression = numbered(kind, syntax.range)
    places[ObjectIdentifier(expression)] = syntax.place
    return expression
  }

  private mutating func numbered(_ kind: Expression.Kind, _ range: SourceRange) -> Expression {
    defer { expressionCount += 1 }
    return Expression(kind, range, number: expressionCount)
  }

  private mutating func kind(_ syntax: Syntax, _ scope: Scope) -> Expression.Kind {
    switch syntax.kind {
    case .literal(let value): return .literal(value)
    case .name(let name): return variable(name, syntax.range, scope)
    case .list(let elements): return .list(elements.map { compile($0, scope) })
    case .map(let entries):
      return .map(entries.map { (compile($0.key, scope), compile($0.value, scope)) })
    case .path(let parts):
      return .path(
        parts.map { part in
          switch part {
          case .text(let text): .text(text)
          case .value(let value): .value(compile(value, scope))
          }
        }
      )
    case .not(let operand): return .not(compile(operand, scope))
    case .negative(let operand): return .negative(compile(operand, scope))
    case .binary(let operation, let left, let right):
      return .binary(operation, compile(left, scope), compile(right, scope))
    case .and(let operands): return .and(operands.map { compile($0, scope) })
    case .or(let operands): return .or(operands.map { compile($0, scope) })
    case .typeTest(let operand, let type):
      if !RuleTypes.names.contains(type) {
        fail(
          "An unsupported type identifier was used with the 'is' operator. Received \(type). "
            + "Expected one of \(RuleTypes.names.sorted().joined(separator: ",")).",
          syntax.place
        )
      }
      return .typeTest(compile(operand, scope), type)
    case .choice(let condition, let first, let second):
      return .choice(compile(condition, scope), compile(first, scope), compile(second, scope))
    case .member(let object, let name): return .member(compile(object, scope), name)
    case .call(let receiver, let name, let arguments):
      return call(receiver, name, arguments, syntax, scope)
    case .index(let object, let index): return .index(compile(object, scope), compile(index, scope))
    case .slice(let object, let from, let to):
      return .slice(
        compile(object, scope),
        from: from.map { compile($0, scope) },
        to: to.map { compile($0, scope) }
      )
    }
  }

  private mutating func variable(
    _ name: String,
    _ range: SourceRange,
    _ scope: Scope
  ) -> Expression.Kind {
    if let place = scope.locals[name] {
      usedLocals.insert(name)
      return .local(place)
    }
    if let place = scope.captures.lastIndex(of: name) { return .capture(place) }
    switch name {
    case "request": return .request
    case "resource": return .resource
    default:
      if Self.packages.contains(name), name != "firestore" {
        refusePackage(name, range)
      } else {
        warn(
          unknown: "variable",
          name,
          range,
          nearest: scope.locals.keys.sorted() + scope.captures + ["request", "resource"]
        )
      }
      return .unknownName(name)
    }
  }

  private mutating func call(
    _ receiver: Syntax?,
    _ name: String,
    _ arguments: [Syntax],
    _ syntax: Syntax,
    _ scope: Scope
  ) -> Expression.Kind {
    let (range, place) = (syntax.range, syntax.place)
    let compiled = arguments.map { compile($0, scope) }
    if let receiver {
      if case .name(let package) = receiver.kind, Self.packages.contains(package),
        scope.locals[package] == nil, !scope.captures.contains(package),
        package != "firestore" || service == .storage
      {
        return packaged(package, name, compiled, place)
      }
      if RuleMethods.isUnknown(name) {
        let methods = TypeSignature.methods.keys.sorted()
        warn(unknown: "function", name, place, nearest: methods)
      } else if let signature = TypeSignature.methods[name],
        signature.arguments.count != arguments.count
      {
        warn("Incorrect number of arguments supplied to function: \(name).", place)
      }
      if name == "matches" || name == "split",
        case .literal(.string(let text)) = arguments.first?.kind
      {
        do { _ = try LinearPattern(text) } catch {
          fail(
            "Invalid regular expression pattern. Pattern: \(text). (\(error.message))",
            arguments[0].range
          )
        }
      }
      return .method(compile(receiver, scope), name, compiled)
    }
    if let number = scope.function(name) {
      declarations[number].isUsed = true
      if let current { declarations[current].calls.insert(number) }
      let wanted = declarations[number].syntax.parameters.count
      guard wanted == arguments.count else {
        warn("Incorrect number of arguments supplied to function: \(name).", range)
        return .unknownFunction(name)
      }
      return .call(number, compiled)
    }
    guard let function = GlobalFunction(rawValue: name) else {
      let known = scope.functions.flatMap { $0.keys.sorted() }
      let globals = GlobalFunction.allCases.map(\.rawValue)
      warn(unknown: "function", name, range, nearest: globals + known)
      return .unknownFunction(name)
    }
    if function == .debug, compiled.count > 1 {
      warn("Incorrect number of arguments supplied to function: \(name).", range)
    }
    guard compiled.count == 1 || function == .debug && !compiled.isEmpty else {
      warn("Incorrect number of arguments supplied to function: \(name).", range)
      return .unknownFunction(name)
    }
    return .global(function, compiled)
  }

  private mutating func packaged(
    _ package: String,
    _ name: String,
    _ arguments: [Expression],
    _ range: SourceRange
  ) -> Expression.Kind {
    if package == "firestore", let function = GlobalFunction(rawValue: name),
      function == .get || function == .exists, arguments.count == 1
    {
      return .global(function, arguments)
    }
    switch PackageFunctions.argumentCount(package, name) {
    case nil:
      let known = TypeSignature.packaged[package, default: [:]].keys.sorted().map {
        "\(package).\($0)"
      }
      warn(unknown: "function", "\(package).\(name)", range, nearest: known)
      return .unknownFunction("\(package).\(name)")
    case arguments.count: return .packaged(package, name, arguments)
    default:
      warn("Incorrect number of arguments supplied to function: \(package).\(name).", range)
      return .unknownFunction("\(package).\(name)")
    }
  }
}

extension PatternPart {
  /// The name and range of the variable that the segment binds; nil for a plain segment.
  var wildcard: (name: String, range: SourceRange)? {
    switch self {
    case .text: nil
    case .capture(let name, let range), .glob(let name, let range): (name, range)
    }
  }
}
