import FirestoreClient

#if canImport(CryptoKit)
  import CryptoKit
#else
  import Cryptography
#endif

/// Feature flags in the form of a Remote Config template.
///
/// The first condition in the template's order that a parameter mentions and that is true for the
/// user determines the value; otherwise it is the default value. A part of the template that cannot
/// be read affects only the parameters that use it, and is listed in `problems`.
struct FlagTemplate: Sendable, Hashable {
  private var conditions: [Condition] = []
  private var parameters: [String: Parameter] = [:]
  /// The parts of the template that cannot be read, in words for its author.
  private(set) var problems: [String] = []

  private struct Condition: Decodable, Hashable {
    var name: String
    var expression: String
  }

  private struct Parameter: Decodable, Hashable {
    var defaultValue: Value?
    var conditionalValues: [String: Value]?
  }

  private struct Group: Decodable {
    var parameters: [String: Lenient<Parameter>]?
  }

  private struct Value: Decodable, Hashable {
    var isTrue: Bool

    private enum CodingKeys: String, CodingKey { case value }

    /// Reads a text, as Remote Config has it, or a Boolean, as a person may write it.
    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      if let isTrue = try? fields.decodeIfPresent(Bool.self, forKey: .value) {
        self.isTrue = isTrue
      } else {
        let text = try fields.decodeIfPresent(String.self, forKey: .value) ?? ""
        isTrue = Self.truths.contains(text.lowercased())
      }
    }

    /// The texts that Firebase's SDKs read as true.
    private static let truths: Set<String> = ["1", "true", "t", "yes", "y", "on"]
  }

  /// Returns true if a Boolean parameter is true for a user.
  func isOn(_ flag: FeatureFlag, for uid: String) -> Bool {
    guard let parameter = parameters[flag.rawValue] else { return false }
    for condition in conditions {
      guard let value = parameter.conditionalValues?[condition.name] else { continue }
      if Self.isTrue(condition.expression, for: uid) == true { return value.isTrue }
    }
    return parameter.defaultValue?.isTrue ?? false
  }

  // MARK: Conditions

  /// Returns true if all elements of an expression hold for a user.
  ///
  /// Returns nil for an expression that the server cannot evaluate, such as one about a device.
  static func isTrue(_ expression: String, for uid: String) -> Bool? {
    var isTrue = true
    for element in expression.split(separator: "&&", omittingEmptySubsequences: false) {
      guard let holds = holds(element, for: uid) else { return nil }
      if !holds { isTrue = false }
    }
    return isTrue
  }

  private static func holds(_ element: Substring, for uid: String) -> Bool? {
    let words = element.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    switch words.lowercased() {
    case "true": return true
    case "false": return false
    default:
      guard words.lowercased().hasPrefix("percent") else { return nil }
      return isPercentTrue(words.dropFirst("percent".count), for: uid)
    }
  }

  /// Evaluates what follows `percent`: an optional seed in brackets, then a comparison.
  private static func isPercentTrue(_ text: Substring, for uid: String) -> Bool? {
    var seed = ""
    var rest = text.drop { $0 == " " }
    if rest.first == "(" {
      guard let end = rest.firstIndex(of: ")") else { return nil }
      seed = rest[rest.index(after: rest.startIndex)..<end]
        .filter { $0 != "'" && $0 != "\"" && $0 != " " }
      rest = rest[rest.index(after: end)...]
    }
    let share = microPercentile(of: uid, seed: seed)
    let words = rest.replacing("<=", with: " <= ").replacing(">", with: " > ")
      .split(separator: " ").map { String($0) }
    func limit(_ index: Int) -> UInt64? {
      guard words.indices.contains(index), let percent = Double(words[index]),
        (0...100).contains(percent)
      else { return nil }
      return UInt64((percent * Double(microPercent)).rounded())
    }
    switch (words.first, words.count) {
    // Nobody is in zero percent, not even the user with the lowest hash.
    case ("<=", 2): return limit(1).map { share <= $0 && $0 > 0 }
    case (">", 2): return limit(1).map { share > $0 }
    case ("between", 4) where words[2] == "and":
      guard let lower = limit(1), let upper = limit(3) else { return nil }
      return lower < share && share <= upper
    default: return nil
    }
  }

  private static let microPercent: UInt64 = 1_000_000

  /// Returns the place of a user among all users, from 0 to 99 999 999.
  ///
  /// It is computed as in the server side of Remote Config: the SHA-256 hash of seed, dot and id,
  /// as a number, modulo one hundred million. An empty seed is left out with its dot.
  static func microPercentile(of id: String, seed: String) -> UInt64 {
    let text = seed.isEmpty ? id : "\(seed).\(id)"
    return SHA256.hash(data: Array(text.utf8)).reduce(0) { remainder, byte in
      (remainder << 8 | UInt64(byte)) % (100 * microPercent)
    }
  }
}

extension FlagTemplate: Decodable {
  private enum CodingKeys: String, CodingKey {
    case conditions, parameters, parameterGroups
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    let conditions = try fields.decodeIfPresent([Lenient<Condition>].self, forKey: .conditions)
    for condition in conditions ?? [] {
      switch condition {
      case .readable(let condition):
        self.conditions.append(condition)
        if Self.isTrue(condition.expression, for: "") == nil {
          problems.append("the server cannot evaluate the condition '\(condition.expression)'")
        }
      case .unreadable(let error): problems.append("\(error)")
      }
    }
    let groups = try fields.decodeIfPresent(
      [String: Lenient<Group>].self,
      forKey: .parameterGroups
    )
    for group in groups?.values.map({ $0 }) ?? [] {
      switch group {
      case .readable(let group): add(group.parameters ?? [:])
      case .unreadable(let error): problems.append("\(error)")
      }
    }
    add(
      try fields.decodeIfPresent([String: Lenient<Parameter>].self, forKey: .parameters) ?? [:]
    )
    problems.sort()
  }

  private mutating func add(_ parameters: [String: Lenient<Parameter>]) {
    for (name, parameter) in parameters {
      switch parameter {
      case .readable(let parameter): self.parameters[name] = parameter
      case .unreadable(let error): problems.append("\(error)")
      }
    }
  }
}
