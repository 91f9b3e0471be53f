package import DocumentModel

/// Test cases for a rules file: requests that it must allow or deny, read from JSON.
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
/// Paths are relative to `/databases/(default)/documents`. A case's own `documents` override the
/// documents of the file; null stands for a missing document. `data` is the document after a write.
/// `merge` is merged into the stored document, including nested maps. `after` contains the other
/// documents that the same request writes, which `getAfter` sees. A `query` has `where`, `orderBy`,
/// `limit`, `offset` and `collectionGroup`.
///
/// Cases for Cloud Storage rules have `objects` with their metadata, `object` after a write, and
/// paths within the `bucket`. Their `documents` are read by `firestore.get`.
///
/// An object with one member stands for a value that JSON cannot represent: `$timestamp`, `$bytes`
/// in base64, `$reference`, `$geopoint`, `$integer`, `$double` and `$vector`.
package struct RulesTestFile: Sendable {
  /// The result that a case expects from the rules.
  package enum Expectation: String, Sendable, CaseIterable {
    case allow, deny
  }

  /// An error in a test file.
  package struct MistakeError: Error, Hashable, CustomStringConvertible {
    /// The path of the member, such as `cases[3].method`; empty for the whole file.
    package var place: String
    package var reason: String
    /// The name of the case that contains the member; nil if there is none.
    package var caseName: String?

    /// The error in one line: `cases[3].method: is missing (in the case 'Alice reads')`.
    package var description: String {
      (place.isEmpty ? "" : "\(place): ") + reason
        + (caseName.map { " (in the case '\($0)')" } ?? "")
    }
  }

  /// The result of one case.
  package struct Result: Sendable {
    package var name: String
    package var expected: Expectation
    package var method: AccessMethod
    /// The path as it is written in the file.
    package var path: String
    package var decision: Decision

    /// True if the rules decided as the case expects.
    package var isAsExpected: Bool { decision.isAllowed == (expected == .allow) }
  }

  /// One case, ready to run.
  struct Case: Sendable {
    var name: String
    var expected: Expectation
    var path: String
    var request: RulesRequest
    var documents: Documents
    /// True if the request writes more than its own document.
    var isBatch: Bool
  }

  /// The maximum size of a file, in bytes.
  package static let bytesMax = 16 << 20

  /// The time of cases that do not set one: January 1, 2026.
  ///
  /// It is fixed, so that a file's cases have the same results on every day.
  package static let standardTime = Timestamp(microseconds: 1_767_225_600_000_000)

  /// The database whose name rules see as `(default)`.
  static let database = DatabaseName(project: "rules-test")

  let cases: [Case]

  /// Reads a file; throws the first mistake, which names the case and the member.
  package init(
    json: [UInt8],
    service: Ruleset.Service = .firestore,
    time: Timestamp = standardTime
  ) throws(MistakeError) {
    cases = try RulesTestReader(time: time, service: service).cases(json)
  }

  /// Evaluates all cases, in file order.
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
  /// The documents of a case: the file's, the case's own, and those that the request writes.
  struct Documents: RulesDocuments, Sendable {
    var stored: [ResourcePath: MapValue]
    /// The case's own documents; a nil value hides a stored document.
    var own: [ResourcePath: MapValue?] = [:]
    /// The documents that the request writes; nil for a deleted document.
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
      // The segments after `databases`, the database's id and `documents`.
      resource(ResourcePath(Array(path.segments.dropFirst(3))), after: after)
    }
  }
}
