import DatabaseModel
import JSONText

/// A value of an expression.
enum RuleValue: Sendable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  /// `auth`, or an object or a list in it.
  case json(JSONValue)
  /// The value of a node with children, which equals nothing.
  case subtree
  case snapshot(RuleSnapshot)

  init(_ leaf: DatabaseLeaf?) {
    switch leaf {
    case nil: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .number(let number): self = .number(number)
    case .string(let text): self = .string(text)
    }
  }

  init(_ json: JSONValue?) {
    switch json {
    case nil, .null: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .number(let number): self = .number(number)
    case .float(let number): self = .number(Double(number))
    case .string(let text): self = .string(text)
    case let json?: self = .json(json)
    }
  }

  init(_ value: IndexValue?) {
    if case .leaf(let leaf) = value { self.init(leaf) } else { self = .null }
  }

  /// The name of the type for error messages.
  var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .json, .subtree: "an object"
    case .snapshot: "a snapshot"
    }
  }

  func equals(_ other: RuleValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.isExactly(right)
    default: false
    }
  }

  /// The text as JavaScript prints a number: `1`, `0.5`, `1e+21`, `NaN`.
  static func text(of number: Double) -> String {
    guard number.isFinite else {
      return number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity"
    }
    guard number != 0 else { return "0" }
    // Swift's text has the same digits, the fewest that are enough, in another arrangement.
    let parts = abs(number).description.split(separator: "e" as Character)
    let mantissa = parts[0].split(separator: "." as Character)
    let fraction = mantissa.count > 1 && mantissa[1] != "0" ? String(mantissa[1]) : ""
    var digits = mantissa[0] + fraction
    // The number is 0.digits times ten to this power.
    var point = mantissa[0].count + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    while digits.first == "0" {
      digits.removeFirst()
      point -= 1
    }
    while digits.last == "0" { digits.removeLast() }
    return (number < 0 ? "-" : "") + arranged(String(digits), point)
  }

  private static func arranged(_ digits: String, _ point: Int) -> String {
    if point > 21 || point < -5 {
      let rest = digits.count > 1 ? "." + digits.dropFirst() : ""
      return digits.prefix(1) + rest + "e" + (point > 0 ? "+" : "-") + String(abs(point - 1))
    }
    if point <= 0 { return "0." + String(repeating: "0", count: -point) + digits }
    if point >= digits.count {
      return digits + String(repeating: "0", count: point - digits.count)
    }
    return digits.prefix(point) + "." + digits.dropFirst(point)
  }
}

/// A node of the tree before or after the write, which is read only when it is asked.
struct RuleSnapshot: Sendable {
  /// True for the tree after the write.
  var isNew: Bool
  /// The path of the node; nil for a path that no node can have.
  var path: DatabasePath?
}
