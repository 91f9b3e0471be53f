import FlowControl
import LinearRegex

/// A parsed and checked rules file, for one service.
package final class Ruleset: Sendable {
  /// The product whose data the rules protect.
  package enum Service: String, Sendable {
    case firestore = "cloud.firestore"
    case storage = "firebase.storage"
  }

  /// The issues for which a file is rejected; at least one of them is an error.
  package struct RejectionError: Error {
    package var issues: [RulesIssue]
  }

  /// The maximum number of compiled regular expressions that are kept.
  private static let patternsMax = 256

  /// The warnings of the compiler.
  package let issues: [RulesIssue]
  let source: SourceText
  let version: Int
  let matches: [CompiledMatch]
  let functions: [CompiledFunction]
  let service: Service
  /// The regular expressions of texts.
  let patterns = BoundedCache<ExactText, LinearPattern>(countMax: Ruleset.patternsMax)

  /// The name and the text of the file.
  package var file: (name: String, content: String) {
    (
      source.name,
      source.text(SourceRange(line: 1, column: 1, offset: 0, endOffset: source.scalars.count))
    )
  }

  /// The length of the text, which the memory of the ruleset is proportional to.
  package var textLength: Int { source.scalars.count }

  /// Parses and checks a file; throws all of its issues if one is an error.
  package init(
    name: String,
    content: String,
    service: Service = .firestore
  ) throws(RejectionError) {
    source = SourceText(name: name, content: content)
    self.service = service
    guard content.utf8.count <= RulesLimits.fileBytesMax else {
      throw RejectionError(
        issues: [
          RulesIssue(
            severity: .error,
            range: source.range(0, 0),
            description:
              "A rules file can have at most \(RulesLimits.fileBytesMax) bytes; this one has "
              + "\(content.utf8.count)."
          )
        ]
      )
    }
    let file: FileSyntax
    do { file = try Parser.parse(source) } catch { throw RejectionError(issues: error.issues) }
    let services = file.services.filter { $0.name == service.rawValue }
    if services.count > 1 {
      throw RejectionError(
        issues: [
          RulesIssue(
            severity: .error,
            range: services[1].range,
            description: "There is more than one 'service \(service.rawValue)' in this file."
          )
        ]
      )
    }
    var compiler = RulesCompiler(version: file.version, service: service)
    compiler.checkServices(file)
    let matches = services.first.map { compiler.compile(file, $0) } ?? []
    var found = compiler.issues.sorted { $0.range.offset < $1.range.offset }
    if services.isEmpty {
      // As in production, no access is allowed without rules for the service.
      found.append(
        RulesIssue(
          severity: .warning,
          range: source.range(0, 0),
          description:
            "There is no 'service \(service.rawValue)' in this file, so nothing is allowed."
        )
      )
    }
    issues = found
    guard !issues.contains(where: { $0.severity == .error }) else {
      throw RejectionError(issues: issues)
    }
    version = file.version
    self.matches = matches
    functions = compiler.functions
  }
}
