import DocumentModel
import DocumentStore
import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import NIOCore
import SecurityRules
import StatusCodes

extension FirestoreService {
  /// The largest request body with rules: a file in which every character is escaped.
  static let rulesBytesMax = 4 << 20

  /// Handles `PUT /emulator/v1/projects/P:securityRules`, which sets the rules of a scope.
  ///
  /// The rules take precedence over the suite's rules file. For the suite's own project, they apply
  /// until that file changes. The response lists the compiler's warnings. Rules with errors are
  /// refused with a list of all errors, and the previous rules stay in force. With `ignore_errors`,
  /// the errors are returned with status 200 instead.
  /// Rules that were loaded for other projects long ago are dropped when they are too many.
  func loadRules(_ scope: RulesPolicy.Scope, _ body: ByteBuffer) throws -> Response {
    guard let rules else { throw StatusError(.unimplemented, "This store takes no rules.") }
    // A decoding error is always the client's fault.
    guard let sent = try? RulesBody(decodingJSON: body.readableBytesView),
      let file = sent.rules.files.first, sent.rules.files.count == 1
    else {
      throw StatusError.invalidArgument(
        "The body must be {\"rules\": {\"files\": [{\"name\": \"firestore.rules\", "
          + "\"content\": \"…\"}]}} with one file."
      )
    }
    let name = file.name ?? "firestore.rules"
    do {
      let ruleset = try Ruleset(name: name, content: file.content)
      try rules.load(sent: ruleset, for: scope, keeping: project)
      store.recheckListeners()
      return try answer(ruleset.issues, name)
    } catch let rejection as Ruleset.RejectionError {
      if sent.ignoreErrors == true || sent.ignoreErrorsField == true {
        return try answer(rejection.issues, name)
      }
      throw StatusError.invalidArgument(
        "Error compiling rules:\n"
          + rejection.issues.map { "L\($0.range.line):\($0.range.column) \($0.description)" }
          .joined(separator: "\n")
      )
    }
  }

  /// Handles `GET /emulator/v1/projects/P:securityRules`, which returns the rules in force.
  func rulesText(_ scope: RulesPolicy.Scope) throws -> Response {
    let found = try found(scope)
    return try .json(
      encoding: RulesBody(
        rules: .init(files: [
          .init(name: found.ruleset.file.name, content: found.ruleset.file.content)
        ])
      )
    )
  }

  /// Handles `GET /emulator/v1/projects/P:ruleCoverage`, and `.html` for a readable page.
  func coverage(_ project: String, isPage: Bool) throws -> Response {
    let found = try found(.project(project))
    return isPage
      ? .html(found.ruleset.coverageHTML(found.coverage))
      : .json(found.ruleset.coverageJSON(found.coverage))
  }

  private func found(_ scope: RulesPolicy.Scope) throws -> RulesPolicy.Rules {
    let database =
      switch scope {
      case .database(let name): name
      case .project(let project): DatabaseName(project: project)
      case .everyProject: DatabaseName(project: project)
      }
    guard let found = rules?.rules(of: database) else {
      throw StatusError(.notFound, "No rules are loaded, so everything is allowed.")
    }
    return found
  }

  private func answer(_ issues: [RulesIssue], _ name: String) throws -> Response {
    guard !issues.isEmpty else { return .json("{}") }
    return try .json(encoding: IssuesReply(issues: issues.map { IssueReply($0, name) }))
  }
}

private struct RulesBody: Codable {
  struct Rules: Codable {
    var files: [File]
  }

  struct File: Codable {
    var name: String?
    var content: String
  }

  var rules: Rules
  var ignoreErrors: Bool?
  /// The protobuf spelling of `ignoreErrors`.
  var ignoreErrorsField: Bool?

  enum CodingKeys: String, CodingKey {
    case rules, ignoreErrors
    case ignoreErrorsField = "ignore_errors"
  }
}

private struct IssuesReply: Encodable {
  var issues: [IssueReply]
}

private struct IssueReply: Encodable {
  struct Position: Encodable {
    var fileName: String
    var line: Int
    var column: Int
    var currentOffset: Int
    var endOffset: Int
  }

  var sourcePosition: Position
  var description: String
  var severity: String

  init(_ issue: RulesIssue, _ name: String) {
    sourcePosition = Position(
      fileName: name,
      line: issue.range.line,
      column: issue.range.column,
      currentOffset: issue.range.offset,
      endOffset: issue.range.endOffset
    )
    description = issue.description
    severity = issue.severity.rawValue
  }
}
