/// The difference between the resources of two plans.
package struct PlanDifference: Sendable, Hashable {
  /// The differences in words, one a line: first what is removed, then added, then changed.
  package let lines: [String]

  package var isEmpty: Bool { lines.isEmpty }

  /// Compares what was generated last with what would be generated now.
  package init(from old: [CloudResource], to new: [CloudResource]) {
    let before = Dictionary(old.map { ($0.id, $0) }) { $1 }
    let after = Dictionary(new.map { ($0.id, $0) }) { $1 }
    let removed = old.filter { after[$0.id] == nil }.map { "- \($0.id)" }
    let added = new.filter { before[$0.id] == nil }.map { "+ \($0.id)" }
    let changed = new.flatMap { resource -> [String] in
      guard let earlier = before[resource.id], earlier != resource else { return [] }
      let names = Set(earlier.properties.keys).union(resource.properties.keys).sorted()
      return ["~ \(resource.id)"]
        + names.compactMap { name in
          let (was, now) = (earlier.properties[name], resource.properties[name])
          guard was != now else { return nil }
          return "    \(name): \(Self.shown(was)) -> \(Self.shown(now))"
        }
    }
    lines = removed + added + changed
  }

  /// Returns a property on one line; control characters are escaped.
  private static func shown(_ text: String?) -> String {
    guard let text else { return "unset" }
    return text.contains(where: \.isNewline) || text.utf8.contains { $0 < 32 }
      ? text.debugDescription : text
  }
}
