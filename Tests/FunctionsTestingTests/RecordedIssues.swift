import FunctionsTesting
import Synchronization
import Testing

/// Runs checks that fail, and returns the issues that they record.
///
/// An error that they throw is an issue too, with the error as its `error`.
func recordedIssues(
  isolation: isolated (any Actor)? = #isolation,
  _ checks: () async throws -> Void
) async -> [Issue] {
  let found = IssueList()
  await withKnownIssue(isIntermittent: true) {
    do { try await checks() } catch { Issue.record(error) }
  } matching: { issue in
    found.add(issue)
    return true
  }
  return found.all
}

/// A thread-safe list of issues.
private final class IssueList: Sendable {
  private let issues = Mutex<[Issue]>([])
  var all: [Issue] { issues.withLock { $0 } }
  func add(_ issue: Issue) { issues.withLock { $0.append(issue) } }
}

extension Issue {
  /// The text of an issue that a check recorded; nil for an error that it threw.
  var text: String? { error == nil ? comments.first?.rawValue : nil }
}
