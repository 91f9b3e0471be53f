package import DocumentModel

/// Cases that say what a rules file must allow and what it must not, read from JSON.
///
/// ```json
/// {
///   "documents": {"users/alice": {"age": 7, "joined": {"$timestamp": "2026-01-01T00:00:00Z"}}},
///   "cases": [{
///     "name": "Alice changes her age", "expect": "allow", "auth": {"uid": "alice"},
///     "method": "update", "path": "users/alice", "merge": {"age": 8}
///   }]
/// }
/// ```
///
/// Paths are below `/databases/(default)/documents`. A case's own `documents` are put over those of
/// the file, null where one is missing. `data` is the document after a write; `merge` is put over
/// the stored one, map into map. `after` says what else the same request writes, which `getAfter`
/// sees. A `query` has `where`, `orderBy`, `limit`, `offset` and `collectionGroup`.
///
/// Cases of Cloud Storage's rules have `objects` with their metadata, `object` after a write, and
/// paths within the `bucket`; `documents` are there for `firestore.get`.
///
/// What JSON cannot say is an object of one member: `$timestamp`, `$bytes` in base64, `$reference`,
/// `$geopoint`, `$double` and `$vector`.
package struct RulesTestFile: Sendable {
  /// What a case expects of the rules.
  package enum Expectation: String, Sendable, CaseIterable {
    case allow, deny
  }

  /// Why a file is not one of cases.
  package struct Mistake: Error, Hashable, CustomStringConvertible {
    /// The member, such as `cases[3].method`; empty for the whole file.
    package var place: String
    package var reason: String
    /// The name of the case in which the member is, if it has one.
    package var caseName: String?

    /// `cases[3].method: is missing (in the case 'Alice reads')`.
    package var description: String {
      (place.isEmpty ? "" : "\(place): ") + reason
        + (caseName.map { " (in the case '\($0)')" } ?? "")
    }
  }

  /// What the rules said to one case.
  package struct Result: Sendable {
    package var name: String
    package var expected: Expectation
    package var method: AccessMethod
    /// As it stands in the file.
    package var path: String
    package var decision: Decision

    /// Whether the rules decided as the case expects.
    package var isAsExpected: Bool { decision.isAllowed == (expected == .allow) }
  }

  /// One case, ready to be asked.
  struct Case: Sendable {
    var name: String
    var expected: Expectation
    var path: String
    var request: RulesRequest
    var documents: Documents
    /// Whether the request writes more than its own document.
    var isBatch: Bool
  }

  /// The largest file, in bytes.
  package static let bytesMax = 16 << 20

  /// The time of cases that do not say theirs: the first of January 2026, so that a file's cases
  /// come out the same on each day.
  package static let standardTime = Timestamp(microseconds: 1_767_225_600_000_000)

  /// The database whose name rules see as `(default)`.
  static let database = DatabaseName(project: "rules-test")

  let cases: [Case]

  /// Reads a file; its first mistake is thrown, which names the case and the member.
  package init(
    json: [UInt8],
    service: Ruleset.Service = .firestore,
    time: Timestamp = standardTime
  ) throws(Mistake) {
    cases = try RulesTestReader(time: time, service: service).cases(json)
  }

  /// Asks the rules each case, in the file's order.
  package func run(_ ruleset: Ruleset, coverage: Coverage? = nil) -> [Result] {
    cases.map { test in
      Result(
        name: test.name,
        expected: test.expected,
        method: test.request.method,
        path: test.path,
        decision: ruleset.decide(
          test.request,
          documents: test.documents,
          ledger: AccessLedger(isSingle: !test.isBatch),
          coverage: coverage
        )
      )
    }
  }
}

extension RulesTestFile {
  /// The documents of a case: the file's, the case's own, and what the request makes of them.
  struct Documents: RulesDocuments, Sendable {
    var stored: [ResourcePath: MapValue]
    /// Of the case; a nil value hides a stored document.
    var own: [ResourcePath: MapValue?] = [:]
    /// What the request writes; nil for what it deletes.
    var written: [ResourcePath: MapValue?] = [:]

    func fields(_ path: ResourcePath, after: Bool) -> MapValue? {
      if after, let fields = written[path] { return fields }
      return own[path] ?? stored[path]
    }

    func resource(_ path: ResourcePath, after: Bool) -> RuleValue? {
      guard let fields = fields(path, after: after) else { return nil }
      let name = DocumentName(database: RulesTestFile.database, path: path)
      return .map(
        .entries([
          "data": .map(.fields(fields)), "id": .string(name.id), "__name__": .path(RulePath(name)),
        ])
      )
    }

    func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
      // After `databases`, the database's id and `documents`.
      resource(ResourcePath(Array(path.segments.dropFirst(3))), after: after)
    }
  }
}
