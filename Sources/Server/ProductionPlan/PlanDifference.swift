/// The difference between the resources of two plans.
package struct PlanDifference: Sendable, Hashable {
  /// The differences in words, one a line: first what is removed, then added, then changed.
  package let lines: [String]

  package var isEmpty: Bool { lines.isEmpty }

  /// Compares what was generated last with what would be generated now.
  package init(from old: [CloudResource], to new: [CloudResource]) {
    let before = Dictionary(old.map { ($0.id, $0) }) { $1 }
    let after = Dictionary(new.map { ($0.id, $0) }) { $1 }
    let removed = old.filter { after[$0.id] == nil }.map { "- \(Self.escaped($0.id))" }
    let added = new.filter { before[$0.id] == nil }.map { "+ \(Self.escaped($0.id))" }
    let changed = new.flatMap { resource -> [String] in
      guard let earlier = before[resource.id], earlier != resource else { return [] }
      let names = Set(earlier.properties.keys).union(resource.properties.keys).sorted()
      return ["~ \(Self.escaped(resource.id))"]
        + names.compactMap { name in
          let (was, now) = (earlier.properties[name], resource.properties[name])
          guard was != now else { return nil }
          return "    \(Self.escaped(name)): \(Self.shown(was)) -> \(Self.shown(now))"
        }
    }
    lines = removed + added + changed
  }

  /// Returns a property on one line; a text with control characters is quoted, with escapes.
  private static func shown(_ text: String?) -> String {
    guard let text else { return "unset" }
    return escaped(text) == text ? text : escaped(text.debugDescription)
  }

  /// Returns a text on one line, so that no part of it can pass for a line of the difference.
  ///
  /// Control characters, line separators and the characters that reorder a line are escaped.
  private static func escaped(_ text: String) -> String {
    var line = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
        line += scalar.escaped(asASCII: true)
      default: line.unicodeScalars.append(scalar)
      }
    }
    return line
  }
}
