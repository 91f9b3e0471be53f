import DocumentModel

/// Finds the rules whose patterns fit a path.
struct PatternSearch {
  /// An `allow` that fits, with the values of the wildcards around it.
  struct Candidate {
    var allow: CompiledAllow
    var captures: [RuleValue?]
  }

  /// Comparisons of a segment with a pattern; nested recursive wildcards could need far more.
  private static let stepsMax = 100_000

  private let request: RulesRequest
  /// Whether a recursive wildcard needs a segment at least.
  private let isFirstVersion: Bool
  private var found: [Candidate] = []
  private var steps = 0

  static func allows(for request: RulesRequest, in ruleset: Ruleset) -> [Candidate] {
    var search = PatternSearch(request: request, isFirstVersion: ruleset.version == 1)
    for match in ruleset.matches { search.look(match, match.path[...], request.path[...], []) }
    return search.found
  }

  private init(request: RulesRequest, isFirstVersion: Bool) {
    self.request = request
    self.isFirstVersion = isFirstVersion
  }

  private mutating func look(
    _ match: CompiledMatch,
    _ pattern: ArraySlice<PatternPart>,
    _ path: ArraySlice<RulesRequest.PathStep>,
    _ captures: [RuleValue?]
  ) {
    steps += 1
    guard steps <= Self.stepsMax else { return }
    guard let part = pattern.first else {
      if path.isEmpty {
        for allow in match.allows where allow.methods.contains(request.method) {
          found.append(Candidate(allow: allow, captures: captures))
        }
      }
      for inner in match.matches { look(inner, inner.path[...], path, captures) }
      return
    }
    let rest = pattern.dropFirst()
    switch part {
    case .text(let text):
      guard case .known(let segment) = path.first, segment.isIdentical(to: text) else { return }
      look(match, rest, path.dropFirst(), captures)
    case .capture:
      switch path.first {
      case .known(let segment): look(match, rest, path.dropFirst(), captures + [.string(segment)])
      case .unknown: look(match, rest, path.dropFirst(), captures + [nil])
      case .anyStretch, nil: return
      }
    case .glob:
      // From the longest to the shortest.
      for end in stride(from: path.endIndex, through: path.startIndex, by: -1) {
        let taken = path[path.startIndex..<end]
        // A stretch that a query leaves open may be none.
        if isFirstVersion, !taken.contains(where: { $0 != .anyStretch }) { continue }
        let value: RuleValue? =
          taken.allSatisfy(\.isKnown) ? .path(RulePath(taken.compactMap(\.text))) : nil
        look(match, rest, path[end...], captures + [value])
      }
    }
  }
}
