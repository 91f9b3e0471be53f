/// A rules file that was read and checked, for one service.
package final class Ruleset: Sendable {
  /// The product whose data the rules guard.
  package enum Service: String, Sendable {
    case firestore = "cloud.firestore"
    case storage = "firebase.storage"
  }

  /// Why a file is not taken; at least one issue is an error.
  package struct Rejection: Error {
    package var issues: [RulesIssue]
  }

  /// The largest file, in bytes of UTF-8.
  package static let bytesMax = 256 << 10

  /// What the compiler warns of.
  package let issues: [RulesIssue]
  let source: SourceText
  let version: Int
  let matches: [CompiledMatch]
  let functions: [CompiledFunction]
  let service: Service
  let patterns = PatternCache()

  /// The file's name, and its text.
  package var file: (name: String, content: String) {
    (
      source.name,
      source.text(SourceRange(line: 1, column: 1, offset: 0, endOffset: source.scalars.count))
    )
  }

  /// Reads a file and checks it; throws all that is wrong with it.
  package init(
    name: String,
    content: String,
    service: Service = .firestore
  ) throws(Rejection) {
    source = SourceText(name: name, content: content)
    self.service = service
    guard content.utf8.count <= Self.bytesMax else {
      throw Rejection(
        issues: [
          RulesIssue(
            severity: .error,
            range: source.range(0, 0),
            description: "A rules file can have at most \(Self.bytesMax) bytes; this one has "
              + "\(content.utf8.count)."
          )
        ]
      )
    }
    let file: FileSyntax
    do { file = try Parser.parse(source) } catch { throw Rejection(issues: error.issues) }
    let services = file.services.filter { $0.name == service.rawValue }
    if services.count > 1 {
      throw Rejection(
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
      // As in production, nobody may do anything then.
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
      throw Rejection(issues: issues)
    }
    version = file.version
    self.matches = matches
    functions = compiler.functions
  }
}
