import DatabaseModel
import DatabaseRules
import DatabaseTree
import DocumentModel
import FirestoreEmulator
import HTTPMessages
import HTTPSupport
import JSONText
import SecurityRules
import StatusCodes

extension ControlAPI {
  /// Handles `GET /hearth/v1/rules/decisions?denied=true&limit=N`.
  ///
  /// Returns the last decisions of the security rules.
  func ruleDecisions(_ query: QueryParameters) throws -> [RuleDecisionDescription] {
    let limit = query["limit"].flatMap { Int($0) } ?? 20
    let firestore = rules.decisions.map { recent in
      RuleDecisionDescription(
        time: recent.time.description,
        method: recent.method.rawValue,
        path: recent.path,
        auth: recent.auth.literal,
        isAllowed: recent.decision.isAllowed,
        text: recent.decision.text(for: recent.method, in: recent.ruleset)
      )
    }
    let database = database.decisions.map { recent in
      RuleDecisionDescription(
        time: recent.time.description,
        method: recent.method,
        path: "\(recent.path) in \(recent.instance)",
        auth: String(decoding: recent.auth.bytes, as: UTF8.self),
        isAllowed: recent.decision.isAllowed,
        text: recent.decision.text(file: recent.file)
      )
    }
    let all = (firestore + database)
      .filter { query["denied"] != "true" || !$0.isAllowed }
      // Without its `Z`, a time with fewer digits comes first, as it should.
      .sorted { $0.time.dropLast() > $1.time.dropLast() }
    return Array(all.prefix(max(0, limit)))
  }

  /// Handles `GET /hearth/v1/rules/coverage?format=html|summary&database=(default)`.
  ///
  /// Returns which expressions of the rules were evaluated.
  func ruleCoverage(_ query: QueryParameters) throws -> Response {
    let database = DatabaseName(project: project, database: query["database"] ?? "(default)")
    guard let rules = rules.rules(of: database) else {
      throw StatusError(.notFound, "No rules are loaded, so everything is allowed.")
    }
    switch query["format"] {
    case "html": return .html(rules.ruleset.coverageHTML(rules.coverage))
    case "summary": return try .json(encoding: rules.ruleset.coverageSummary(rules.coverage))
    default: return .json(rules.ruleset.coverageJSON(rules.coverage))
    }
  }
}
