import DocumentModel

/// An error in the operands of an operator or a method; the evaluation adds the position.
struct OperationError: Error {
  var message: String

  static func unsupported(_ received: String) -> OperationError {
    OperationError(message: "Unsupported operation error. Received: \(received).")
  }

  static let tooMuchWork = OperationError(
    message: "The rules take too long to evaluate: their texts, lists or patterns are too large."
  )
}

/// The operators on known values.
enum RuleOperators {
  static func value(
    _ operation: BinaryOperator,
    _ left: RuleValue,
    _ right: RuleValue
  ) throws(OperationError) -> RuleValue {
    switch operation {
    case .equal: return .bool(left.equals(right))
    case .notEqual: return .bool(!left.equals(right))
    case .isIn: return .bool(try contains(right, left))
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      return .bool(try compare(operation, left, right))
    case .add, .subtract, .multiply, .divide, .remainder:
      guard let result = try arithmetic(operation, left, right) else {
        throw .unsupported("\(left.typeName) \(operation.rawValue) \(right.typeName)")
      }
      return result
    }
  }

  static func negated(_ value: RuleValue) throws(OperationError) -> RuleValue {
    switch value {
    case .int(let number):
      let (result, overflows) = (0 as Int64).subtractingReportingOverflow(number)
      guard !overflows else { throw overflow }
      return .int(result)
    case .float(let number): return .float(-number)
    case .duration(let span): return .duration(RuleDuration(totalNanos: -span.totalNanos))
    default: throw .unsupported("-\(value.typeName)")
    }
  }

  /// The order of two values of the same kind.
  enum Order {
    case less, equal, greater
  }

  /// Returns the order of two values; nil if their types have no common order or one is NaN.
  static func order(_ left: RuleValue, _ right: RuleValue) -> Order? {
    func order<T: Comparable>(_ a: T, _ b: T) -> Order? {
      if a < b { .less } else if a == b { .equal } else if a > b { .greater } else { nil }
    }
    switch (left, right) {
    case (.int(let a), .int(let b)): return order(a, b)
    case (.float(let a), .float(let b)): return order(a, b)
    case (.int(let a), .float(let b)): return order(Double(a), b)
    case (.float(let a), .int(let b)): return order(a, Double(b))
    case (.timestamp(let a), .timestamp(let b)): return order(a, b)
    case (.duration(let a), .duration(let b)): return order(a, b)
    case (.bytes(let a), .bytes(let b)):
      return a == b ? .equal : a.lexicographicallyPrecedes(b) ? .less : .greater
    case (.string(let a), .string(let b)):
      switch ValueOrder.compareText(a, b) {
      case .less: return .less
      case .equal: return .equal
      case .greater: return .greater
      }
    default: return nil
    }
  }

  private static func compare(
    _ operation: BinaryOperator,
    _ left: RuleValue,
    _ right: RuleValue
  ) throws(OperationError) -> Bool {
    guard let order = order(left, right) else {
      // NaN is neither less nor greater than a number.
      if left.isNumber, right.isNumber { return false }
      throw .unsupported("\(left.typeName) \(operation.rawValue) \(right.typeName)")
    }
    switch operation {
    case .less: return order == .less
    case .lessOrEqual: return order != .greater
    case .greater: return order == .greater
    default: return order != .less
    }
  }

  private static func contains(
    _ container: RuleValue,
    _ element: RuleValue
  ) throws(OperationError) -> Bool {
    switch container {
    case .list(let elements): return elements.contains { $0.isSame(as: element) }
    case .set(let set): return set.contains(element)
    case .map(let map):
      guard case .string(let key) = element else { break }
      return map.contains(key)
    default: break
    }
    if container.isNull { throw OperationError(message: "Null value error.") }
    throw OperationError(message: "Function not found error: Name: [in].")
  }

  private static func arithmetic(
    _ operation: BinaryOperator,
    _ left: RuleValue,
    _ right: RuleValue
  ) throws(OperationError) -> RuleValue? {
    switch (left, right) {
    case (.int(let a), .int(let b)): return .int(try integers(operation, a, b))
    case (.int(let a), .float(let b)): return .float(floats(operation, Double(a), b))
    case (.float(let a), .int(let b)): return .float(floats(operation, a, Double(b)))
    case (.float(let a), .float(let b)): return .float(floats(operation, a, b))
    case (.string(let a), .string(let b)): return operation == .add ? .string(a + b) : nil
    case (.duration(let a), .duration(let b)):
      switch operation {
      case .add: return .duration(try RuleDuration(checked: a.totalNanos + b.totalNanos))
      case .subtract: return .duration(try RuleDuration(checked: a.totalNanos - b.totalNanos))
      default: return nil
      }
    case (.timestamp(let time), .duration(let span)):
      switch operation {
      case .add: return .timestamp(try RuleTimestamp(totalNanos: time.totalNanos + span.totalNanos))
      case .subtract:
        return .timestamp(try RuleTimestamp(totalNanos: time.totalNanos - span.totalNanos))
      default: return nil
      }
    case (.duration(let span), .timestamp(let time)):
      guard operation == .add else { return nil }
      return .timestamp(try RuleTimestamp(totalNanos: time.totalNanos + span.totalNanos))
    case (.timestamp(let a), .timestamp(let b)):
      guard operation == .subtract else { return nil }
      return .duration(try RuleDuration(checked: a.totalNanos - b.totalNanos))
    default: return nil
    }
  }

  private static func integers(
    _ operation: BinaryOperator,
    _ a: Int64,
    _ b: Int64
  ) throws(OperationError) -> Int64 {
    if b == 0, operation == .divide || operation == .remainder {
      throw OperationError(message: "Divide by zero error.")
    }
    let (result, overflows) =
      switch operation {
      case .add: a.addingReportingOverflow(b)
      case .subtract: a.subtractingReportingOverflow(b)
      case .multiply: a.multipliedReportingOverflow(by: b)
      case .divide: a.dividedReportingOverflow(by: b)
      default: a.remainderReportingOverflow(dividingBy: b)
      }
    // The smallest integer divided by −1 is the same integer again.
    guard !overflows || operation == .divide || operation == .remainder else { throw overflow }
    return result
  }

  private static let overflow = OperationError(
    message: "Integer value is out of the [\(Int64.min), \(Int64.max)] range."
  )

  private static func floats(_ operation: BinaryOperator, _ a: Double, _ b: Double) -> Double {
    switch operation {
    case .add: a + b
    case .subtract: a - b
    case .multiply: a * b
    case .divide: a / b
    default: a.truncatingRemainder(dividingBy: b)
    }
  }
}

extension RuleValue {
  var isNumber: Bool {
    switch self {
    case .int, .float: true
    default: false
    }
  }
}

extension RuleTimestamp {
  var totalNanos: Int128 { Int128(seconds) * 1_000_000_000 + Int128(nanos) }

  /// Creates a timestamp; throws outside the years 1 to 9999.
  init(totalNanos: Int128) throws(OperationError) {
    var seconds = totalNanos / 1_000_000_000
    var nanos = totalNanos % 1_000_000_000
    if nanos < 0 { (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000) }
    guard let seconds = Int64(exactly: seconds), Timestamp.secondsRange.contains(seconds) else {
      throw OperationError(message: "The timestamp is out of range.")
    }
    self.init(seconds: seconds, nanos: Int32(nanos))
  }
}

extension RuleDuration {
  init(checked totalNanos: Int128) throws(OperationError) {
    guard totalNanos.magnitude <= UInt128(Self.secondsMax) * 1_000_000_000 else {
      throw OperationError(message: "The duration is out of range.")
    }
    self.init(totalNanos: totalNanos)
  }
}

/// The types that the operator `is` can test.
enum RuleTypes {
  static let names: Set<String> = [
    "bool", "bytes", "float", "int", "list", "latlng", "number", "path", "map", "string",
    "timestamp", "duration", "set", "map_diff", "constraint", "vector",
  ]

  /// Indicates whether a value has a type; nil for an unknown type.
  static func test(_ value: RuleValue, _ type: String) -> Bool? {
    guard names.contains(type) else { return nil }
    switch (type, value) {
    case ("number", _): return value.isNumber
    // In Firebase's emulator no value has this type.
    case ("set", _): return false
    default: return value.typeName == type
    }
  }
}
