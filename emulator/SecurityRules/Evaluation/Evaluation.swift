/// The state of one evaluation of rules.
final class Evaluation {
  /// The maximum length of a failure message, which may contain a client's data.
  private static let messageMax = 400

  /// The values of a function's parameters and variables.
  ///
  /// Variables are evaluated at their first use.
  final class Frame {
    enum Slot {
      case value(RuleValue)
      // Boxed, because an error is several times as large as a value.
      indirect case failed(RuleError)
      case pending(Expression)
    }

    var slots: [Slot]

    init(_ slots: [Slot] = []) { self.slots = slots }
  }

  /// An expression within one call of its function.
  private struct Part: Hashable {
    let expression: ObjectIdentifier
    let frame: ObjectIdentifier

    init(_ expression: Expression, _ frame: Frame) {
      self.expression = ObjectIdentifier(expression)
      self.frame = ObjectIdentifier(frame)
    }
  }

  let ruleset: Ruleset
  let request: RulesRequest
  let constraints: QueryConstraints?
  let documents: any RulesDocuments
  let ledger: AccessLedger
  /// The documents that this evaluation has accessed, by their indices in the ledger.
  var accesses: [Int] = []
  /// The frame of all code that has neither parameters nor variables.
  private let emptyFrame = Frame()
  /// The values of the wildcards in the matched pattern; nil for those that a query leaves open.
  var captures: [RuleValue?] = []
  private var callDepth = 0
  private(set) var expressionCount = 0
  private var depth = 0
  var madeWeight = 0
  /// True if each part of a condition is evaluated only once.
  private var isOnce = false
  /// The results of the parts of conditions while `isOnce` is true.
  private var found: [Part: Result<RuleValue, RuleError>] = [:]
  /// The frames of calls while `isOnce` is true.
  ///
  /// They are kept as long as `found`, whose keys identify them by address.
  private var calls: [Part: Frame] = [:]
  private let coverage: CoverageRecord?
  /// The values passed to `debug`, up to a maximum number.
  var debugged: [Decision.DebugValue] = []
  let keepsDebugged: Bool

  init(
    _ ruleset: Ruleset,
    _ request: RulesRequest,
    constraints: QueryConstraints?,
    documents: any RulesDocuments,
    ledger: AccessLedger,
    coverage: CoverageRecord? = nil,
    keepsDebugged: Bool = true
  ) {
    self.ruleset = ruleset
    self.request = request
    self.constraints = constraints
    self.documents = documents
    self.ledger = ledger
    self.coverage = coverage
    self.keepsDebugged = keepsDebugged
  }

  /// Returns a copy of a finished evaluation, used to examine the parts of its conditions again.
  ///
  /// The work of the copy does not count toward the limits of the request.
  func repeated() -> Evaluation {
    let other = Evaluation(
      ruleset,
      request,
      constraints: constraints,
      documents: documents,
      ledger: ledger.copy(),
      keepsDebugged: false
    )
    other.accesses = accesses
    // Operands that were not needed are evaluated too, for each of the reported rules.
    other.expressionCount = -20 * RulesLimits.expressionsMax
    return other
  }

  /// Prepares a rule for an evaluation in which each part is evaluated only once.
  func beginOnce(_ captures: [RuleValue?]) {
    self.captures = captures
    isOnce = true
    found = [:]
    calls = [:]
  }

  /// Evaluates a condition; a value that is not a `bool` is an error.
  func holds(_ condition: Expression) throws(RuleError) -> Bool {
    try bool(condition, emptyFrame)
  }

  /// The remaining work on large values.
  var workLeft: Int {
    get { ledger.work }
    set { ledger.work = newValue }
  }

  // MARK: Expressions

  func value(_ expression: Expression, _ frame: Frame) throws(RuleError) -> RuleValue {
    if isOnce { return try onceFound(expression, frame) }
    guard let coverage else { return try plainValue(expression, frame) }
    do {
      let value = try plainValue(expression, frame)
      coverage.add(expression, .success(value))
      return value
    } catch {
      coverage.add(expression, .failure(error))
      throw error
    }
  }

  private func onceFound(_ expression: Expression, _ frame: Frame) throws(RuleError) -> RuleValue {
    let part = Part(expression, frame)
    if let known = found[part] { return try known.get() }
    do {
      let value = try plainValue(expression, frame)
      found[part] = .success(value)
      return value
    } catch {
      found[part] = .failure(error)
      throw error
    }
  }

  private func plainValue(_ expression: Expression, _ frame: Frame) throws(RuleError) -> RuleValue {
    expressionCount += 1
    guard expressionCount <= RulesLimits.expressionsMax else {
      throw failure(
        "Unable to evaluate the expression as the maximum of \(RulesLimits.expressionsMax) "
          + "expressions to evaluate has been reached.",
        expression
      )
    }
    guard depth < RulesLimits.evaluationDepthMax else {
      throw failure("Expression is too complex to evaluate safely.", expression)
    }
    // After an operand that took too long, the other operands are not evaluated either.
    guard ledger.work >= 0 else {
      throw failure(OperationError.tooMuchWork.message, expression)
    }
    depth += 1
    defer { depth -= 1 }
    switch expression.kind {
    case .literal(let value): return value
    case .request: return wholeRequest
    case .resource:
      if constraints != nil { return .queried(QueriedPart(names: [])) }
      guard let resource = request.resource else { throw undefined("resource", expression) }
      return resource
    case .capture(let place):
      guard let value = captures[place] else {
        throw failure("The path of a query's results is not known before it runs.", expression)
      }
      return value
    case .local(let place): return try local(place, frame)
    case .unknownName: throw failure("Null value error.", expression)
    case .unknownFunction(let name):
      throw failure("Function not found error: Name: [\(name)].", expression)
    case .list(let elements):
      var values: [RuleValue] = []
      for element in elements { values.append(try known(element, frame)) }
      return try bounded(.list(values), expression)
    case .map(let entries):
      var values = RuleMembers()
      for entry in entries {
        guard case .string(let key) = try known(entry.key, frame) else {
          throw failure("A map's keys must be texts.", entry.key)
        }
        values[key] = try known(entry.value, frame)
      }
      return try bounded(.map(.members(values)), expression)
    case .path(let parts): return .path(try path(parts, frame))
    case .not(let operand): return .bool(try !bool(operand, frame))
    case .negative(let operand): return try negated(try known(operand, frame), expression)
    case .binary(let operation, let left, let right):
      return try binary(operation, left, right, frame, expression)
    case .and(let operands):
      return .bool(try decide(operands, frame, expression, decisive: false))
    case .or(let operands):
      return .bool(try decide(operands, frame, expression, decisive: true))
    case .typeTest(let operand, let type):
      let value = try known(operand, frame)
      guard let isOfType = RuleTypes.test(value, type) else {
        throw failure("Unknown type: \(type).", expression)
      }
      return .bool(isOfType)
    case .choice(let condition, let first, let second):
      return try value(try bool(condition, frame) ? first : second, frame)
    case .member(let object, let name):
      if case .request = object.kind { return try requestMember(name, expression) }
      return try member(try value(object, frame), name, expression)
    case .call(let number, let arguments):
      return try call(ruleset.functions[number], arguments, frame, expression)
    case .global(let function, let arguments):
      return try global(function, arguments[0], frame, expression)
    case .packaged(let package, let name, let arguments):
      let values = try self.known(arguments, frame)
      do { return try PackageFunctions.call(package, name, values) } catch {
        throw failure(error.message, expression)
      }
    case .method(let object, let name, let arguments):
      let receiver = try value(object, frame)
      let values = try self.known(arguments, frame)
      if case .queried(let part) = receiver {
        if name == "get", case .string(let key) = values.first, values.count == 2,
          !part.names.isEmpty,
          let value = constraints?.equalValue(of: QueriedPart(names: part.names + [key]))
        {
          return value
        }
        guard let proof = constraints?.proof(ofMethod: name, part, values) else {
          throw unproven(part, object)
        }
        return .bool(proof)
      }
      let result: RuleValue
      do {
        try spend(receiver.work(ofCalling: name, values, atMost: ledger.work))
        var work = ledger.work
        defer { ledger.work = work }
        result = try RuleMethods.call(name, on: receiver, values, ruleset.patterns, work: &work)
        if name == "get" { work -= result.work(ofTakingFrom: receiver) }
      } catch {
        throw failure(error.message, expression)
      }
      return try bounded(result, expression)
    case .index(let object, let index):
      let base = try value(object, frame)
      let index = try known(index, frame)
      if case .queried = base, case .string(let name) = index {
        return try member(base, name, expression)
      }
      do {
        try spend(base.workOfIndexing)
        let element = try RuleMethods.element(of: base, at: index)
        try spend(element.work(ofTakingFrom: base))
        return element
      } catch {
        throw failure(error.message, expression)
      }
    case .slice(let object, let from, let to):
      let base = try known(object, frame)
      var bounds: (from: RuleValue?, to: RuleValue?)
      if let from { bounds.from = try known(from, frame) }
      if let to { bounds.to = try known(to, frame) }
      let part: RuleValue
      do {
        try spend(base.workOfIndexing)
        part = try RuleMethods.slice(base, bounds.from, bounds.to)
      } catch {
        throw failure(error.message, expression)
      }
      return try bounded(part, expression)
    }
  }

  /// Evaluates an expression whose value must not depend on an open part of a query.
  func known(_ expression: Expression, _ frame: Frame) throws(RuleError) -> RuleValue {
    let value = try value(expression, frame)
    if case .queried(let part) = value { throw unproven(part, expression) }
    return value
  }

  func known(_ expressions: [Expression], _ frame: Frame) throws(RuleError) -> [RuleValue] {
    var values: [RuleValue] = []
    for expression in expressions { values.append(try known(expression, frame)) }
    return values
  }

  func bool(_ expression: Expression, _ frame: Frame) throws(RuleError) -> Bool {
    let value = try known(expression, frame)
    guard case .bool(let bool) = value else {
      throw failure(
        "Type error. Received: [\(value.typeName)] Expected: [bool].",
        expression
      )
    }
    return bool
  }

  /// Evaluates `&&` and `||`: a decisive operand decides even if another operand fails.
  private func decide(
    _ operands: [Expression],
    _ frame: Frame,
    _ expression: Expression,
    decisive: Bool
  ) throws(RuleError) -> Bool {
    // Each operator counts as an expression, and again if it needs its right operand.
    expressionCount += operands.count - 2
    var error: RuleError?
    for (place, operand) in operands.enumerated() {
      if place > 0 { expressionCount += 1 }
      do {
        if try bool(operand, frame) == decisive { return decisive }
      } catch let failure {
        error = error ?? failure
      }
    }
    if let error { throw error }
    return !decisive
  }

  private func local(_ place: Int, _ frame: Frame) throws(RuleError) -> RuleValue {
    switch frame.slots[place] {
    case .value(let known): return known
    case .failed(let error): throw error
    case .pending(let expression):
      do throws(RuleError) {
        let value = try value(expression, frame)
        frame.slots[place] = .value(value)
        return value
      } catch {
        frame.slots[place] = .failed(error)
        throw error
      }
    }
  }

  private func call(
    _ function: CompiledFunction,
    _ arguments: [Expression],
    _ frame: Frame,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    guard callDepth <= RulesLimits.callDepthMax else {
      throw failure(
        "Maximum allowed call depth of \(RulesLimits.callDepthMax) is reached.",
        expression
      )
    }
    callDepth += 1
    defer { callDepth -= 1 }
    return try value(function.result, self.frame(of: expression, function, arguments, frame))
  }

  /// Returns the frame of a call and evaluates its arguments, but not its variables.
  func frame(
    of call: Expression,
    _ function: CompiledFunction,
    _ arguments: [Expression],
    _ frame: Frame
  ) -> Frame {
    if arguments.isEmpty, function.lets.isEmpty { return emptyFrame }
    if isOnce, let known = calls[Part(call, frame)] { return known }
    let inner = Frame()
    inner.slots.reserveCapacity(arguments.count + function.lets.count)
    if isOnce { calls[Part(call, frame)] = inner }
    for argument in arguments {
      // A failed argument fails only where it is used.
      do throws(RuleError) {
        inner.slots.append(.value(try value(argument, frame)))
      } catch {
        inner.slots.append(.failed(error))
      }
    }
    for binding in function.lets { inner.slots.append(.pending(binding)) }
    return inner
  }

  // MARK: Failures

  func failure(_ message: String, _ expression: Expression) -> RuleError {
    RuleError(
      message: message.shortened(scalarsMax: Self.messageMax),
      range: expression.range
    )
  }

  func undefined(_ name: String, _ expression: Expression) -> RuleError {
    failure("Property \(name) is undefined on object.", expression)
  }

  func unproven(_ part: QueriedPart, _ expression: Expression) -> RuleError {
    let name = (["resource"] + part.names).joined(separator: ".")
    return failure(
      "The query's filters do not say enough of \(name) to prove this for all results.",
      expression
    )
  }
}
