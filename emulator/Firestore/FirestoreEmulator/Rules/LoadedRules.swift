import DocumentModel
import SecurityRules

/// The rulesets in force by scope, bounded by the length of all texts.
///
/// A client can load rules for any number of projects, as tests do that use a new project each. If
/// they are too many, those that were loaded first are replaced with rules that allow nothing,
/// because a project without rules would allow everything.
struct LoadedRules {
  /// The maximum length of all texts; the memory of a ruleset is up to 25 times its text.
  static let lengthMax = 4 << 20
  /// The length of the texts after some were dropped, so that this is seldom necessary.
  private static let lengthAfterDrop = lengthMax / 4 * 3
  /// The length that is counted for each scope beside its text, for its coverage.
  private static let scopeLength = 1 << 10
  /// The maximum number of scopes whose rules were dropped; each is little more than a name.
  private static let droppedMax = 100_000

  private struct Entry {
    var rules: RulesPolicy.Rules
    /// The number of the loading; nil if the rules were dropped.
    var load: Int?
    var length: Int
  }

  private var entries: [RulesPolicy.Scope: Entry] = [:]
  private var loads = 0
  /// The length of all texts that were not dropped, with `scopeLength` for each.
  private var length = 0
  private var dropped = 0

  subscript(scope: RulesPolicy.Scope) -> RulesPolicy.Rules? { entries[scope]?.rules }

  /// Puts rules in force.
  mutating func put(_ ruleset: Ruleset, for scope: RulesPolicy.Scope) {
    loads += 1
    set(scope, Entry(rules: .init(ruleset), load: loads, length: ruleset.textLength))
  }

  /// Puts rules in force within the bound; returns the scopes whose rules were dropped.
  ///
  /// The rules for every project and those of `project` are never dropped or refused. Returns nil,
  /// and keeps the former rules of the scope, if no further rules can be dropped.
  mutating func put(
    _ ruleset: Ruleset,
    for scope: RulesPolicy.Scope,
    keeping project: String
  ) -> [RulesPolicy.Scope]? {
    let former = entries[scope]
    put(ruleset, for: scope)
    guard length > Self.lengthMax else { return [] }
    let oldestFirst = entries.filter {
      $0.value.load != nil && $0.key != scope && !$0.key.isKept(with: project)
    }.sorted { ($0.value.load ?? 0) < ($1.value.load ?? 0) }.map(\.key)
    var displaced: [RulesPolicy.Scope] = []
    for oldest in oldestFirst where length > Self.lengthAfterDrop && dropped < Self.droppedMax {
      set(oldest, Entry(rules: .init(Self.nothingAllowed), load: nil, length: 0))
      displaced.append(oldest)
    }
    guard length <= Self.lengthMax || scope.isKept(with: project) else {
      set(scope, former)
      return nil
    }
    return displaced
  }

  /// Removes the rules of a scope, so that others apply to it.
  mutating func remove(_ scope: RulesPolicy.Scope) { set(scope, nil) }

  private mutating func set(_ scope: RulesPolicy.Scope, _ entry: Entry?) {
    if let former = entries[scope] { count(former, -1) }
    if let entry { count(entry, 1) }
    entries[scope] = entry
  }

  private mutating func count(_ entry: Entry, _ sign: Int) {
    if entry.load == nil {
      dropped += sign
    } else {
      length += sign * (entry.length + Self.scopeLength)
    }
  }

  private static let nothingAllowed: Ruleset = {
    let text = """
      // The rules were dropped, because many were loaded for other projects. Load them again.
      service cloud.firestore { match /{path=**} { allow read, write: if false; } }
      """
    guard let ruleset = try? Ruleset(name: "dropped.rules", content: text) else {
      preconditionFailure("the text is a valid rules file")
    }
    return ruleset
  }()
}

extension RulesPolicy.Scope {
  /// True for the scopes of the suite's own project, which are few.
  fileprivate func isKept(with project: String) -> Bool {
    switch self {
    case .everyProject: true
    case .project(let own): own == project
    case .database(let name): name == DatabaseName(project: project)
    }
  }
}
