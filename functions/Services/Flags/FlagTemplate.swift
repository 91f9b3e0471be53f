import Crypto
import FirestoreClient

/// Feature flags in the form of a Remote Config template.
///
/// The first condition in the template's order that a parameter mentions and that is true for the
/// user determines the value; otherwise it is the default value.
struct FlagTemplate: Sendable, Hashable {
  private var conditions: [Condition] = []
  private var parameters: [String: Parameter] = [:]

  private struct Condition: Decodable, Hashable {
    var name: String
    var expression: String
  }

  private struct Parameter: Decodable, Hashable {
    var defaultValue: Value?
    var conditionalValues: [String: Value]?
  }

  private struct Value: Decodable, Hashable {
    var value: String?

    private enum CodingKeys: String, CodingKey { case value }

    /// Reads a text, as Remote Config has it, or a Boolean, as a person may write it.
    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      if let isOn = try? fields.decodeIfPresent(Bool.self, forKey: .value) {
        value = isOn ? "true" : "false"
      } else {
        value = try fields.decodeIfPresent(String.self, forKey: .value)
      }
    }
  }

  /// Returns true if a Boolean parameter is true for a user.
  func isOn(_ flag: FeatureFlag, for uid: String) -> Bool {
    guard let parameter = parameters[flag.rawValue] else { return false }
    for condition in conditions {
      guard let value = parameter.conditionalValues?[condition.name] else { continue }
      if Self.isTrue(condition.expression, for: uid) { return value.value == "true" }
    }
    return parameter.defaultValue?.value == "true"
  }

  // MARK: Conditions

  /// Returns true if all elements of an expression hold for a user.
  ///
  /// An element that says something about a device is false, because the server knows none.
  static func isTrue(_ expression: String, for uid: String) -> Bool {
    let elements = expression.split(separator: "&&", omittingEmptySubsequences: false)
      .map { $0.drop(while: \.isWhitespace) }
    return elements.allSatisfy { element in
      switch element.split(separator: " ").joined(separator: " ") {
      case "true": true
      case let text where text.hasPrefix("percent"): isPercentTrue(text.dropFirst(7), for: uid)
      default: false
      }
    }
  }

  /// Evaluates what follows `percent`: an optional seed in brackets, then a comparison.
  private static func isPercentTrue(_ text: Substring, for uid: String) -> Bool {
    var seed = ""
    var rest = text.drop { $0 == " " }
    if rest.first == "(" {
      guard let end = rest.firstIndex(of: ")") else { return false }
      seed = rest[rest.index(after: rest.startIndex)..<end]
        .filter { $0 != "'" && $0 != "\"" && $0 != " " }
      rest = rest[rest.index(after: end)...]
    }
    let share = microPercentile(of: uid, seed: seed)
    let words = rest.split(separator: " ").map { String($0) }
    func limit(_ index: Int) -> UInt64? {
      guard words.indices.contains(index), let percent = Double(words[index]),
        (0...100).contains(percent)
      else { return nil }
      return UInt64((percent * Double(microPercent)).rounded())
    }
    switch (words.first, words.count) {
    case ("<=", 2): return limit(1).map { share <= $0 && $0 > 0 } ?? false
    case (">", 2): return limit(1).map { share > $0 } ?? false
    case ("between", 4) where words[2] == "and":
      guard let lower = limit(1), let upper = limit(3) else { return false }
      return lower < share && share <= upper
    default: return false
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
    case conditions, parameters
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    conditions = try fields.decodeIfPresent([Condition].self, forKey: .conditions) ?? []
    parameters = try fields.decodeIfPresent([String: Parameter].self, forKey: .parameters) ?? [:]
  }
}
