import DocumentModel

/// A search for the rules whose patterns match a path.
struct PatternSearch {
  /// A matching `allow`, with the values of the wildcards that enclose it.
  struct Candidate {
    var allow: CompiledAllow
    var captures: [RuleValue?]
  }

  /// The maximum number of comparisons; nested recursive wildcards could need far more.
  private static let stepsMax = 100_000

  private let request: RulesRequest
  /// True if a recursive wildcard needs at least one segment, as in version 1.
  private let isFirstVersion: Bool
  private var found: [Candidate] = []
  /// The values of the wildcards in the patterns before the one being compared.
  private var captures: [RuleValue?] = []
  private var steps = 0

  static func allows(for request: RulesRequest, in ruleset: Ruleset) -> [Candidate] {
    var search = PatternSearch(request: request, isFirstVersion: ruleset.version == 1)
    for match in ruleset.matches { search.look(match, 0, 0) }
    return search.found
  }

  private init(request: RulesRequest, isFirstVersion: Bool) {
    self.request = request
    self.isFirstVersion = isFirstVersion
  }

  /// Compares the rest of a match's pattern with the rest of the path, from the given indices on.
  private mutating func look(_ match: CompiledMatch, _ place: Int, _ pathPlace: Int) {
    steps += 1
    guard steps <= Self.stepsMax else { return }
    guard place < match.path.count else {
      if pathPlace == request.path.count {
        for allow in match.allows where allow.methods.contains(request.method) {
          found.append(Candidate(allow: allow, captures: captures))
        }
      }
      for inner in match.matches { look(inner, 0, pathPlace) }
      return
    }
    let step = pathPlace < request.path.count ? request.path[pathPlace] : nil
    switch match.path[place] {
    case .text(let text):
      guard case .known(let segment) = step, segment.isIdentical(to: text) else { return }
      look(match, place + 1, pathPlace + 1)
    case .capture:
      switch step {
      case .known(let segment): capture(.string(segment), match, place + 1, pathPlace + 1)
      case .unknown: capture(nil, match, place + 1, pathPlace + 1)
      case .anyStretch, nil: return
      }
    case .glob:
      // From the longest match to the shortest.
      for end in stride(from: request.path.count, through: pathPlace, by: -1) {
        let taken = request.path[pathPlace..<end]
        // An open stretch of a query's path may be empty.
        if isFirstVersion, !taken.contains(where: { $0 != .anyStretch }) { continue }
        let value: RuleValue? =
          taken.allSatisfy(\.isKnown) ? .path(RulePath(taken.compactMap(\.text))) : nil
        capture(value, match, place + 1, end)
      }
    }
  }

  private mutating func capture(
    _ value: RuleValue?,
    _ match: CompiledMatch,
    _ place: Int,
    _ pathPlace: Int
  ) {
    captures.append(value)
    look(match, place, pathPlace)
    captures.removeLast()
  }
}
