public import FirestoreClient
import FirestoreEmulator
import Foundation
import SecurityRules

extension FunctionsSuite {
  /// Activates security rules for all access except through the server client.
  ///
  /// Before that, all access is allowed. Throws `invalidRules` with all problems by line and
  /// column. In this case the previous rules stay active.
  public func loadRules(_ source: String, name: String = "firestore.rules") throws {
    do {
      core.rules.load(try Ruleset(name: name, content: source), for: .everyProject)
    } catch {
      throw FunctionsTestingError(
        .invalidRules,
        error.issues.map { "\(name):\($0.text)" }.joined(separator: "\n")
      )
    }
  }

  /// Activates the security rules of a file, such as the project's `firestore.rules`.
  ///
  /// Throws `invalidRules` if the file cannot be read or the rules have problems. In this case the
  /// previous rules stay active.
  public func loadRules(file path: String) throws {
    let source: String
    do { source = try String(contentsOf: URL(filePath: path), encoding: .utf8) } catch {
      throw FunctionsTestingError(
        .invalidRules,
        "\(path) cannot be read: \(error.localizedDescription)"
      )
    }
    try loadRules(source, name: URL(filePath: path).lastPathComponent)
  }

  /// Runs `body` with an identity and checks that the security rules allow every access.
  ///
  /// ```swift
  /// try await suite.expectAllowed(as: "tina") { try await $0.document("users/tina").get() }
  /// ```
  ///
  /// Returns the result of `body`. If the rules refuse an access, returns nil and records an issue
  /// at the caller's line, with the rule, the part of it that was false, and the values in it.
  /// Outside a test of Swift Testing or XCTest it throws the issue as a `FunctionsTestingError` of
  /// the kind `unexpectedAccess`. Rethrows any other error of `body`.
  @discardableResult
  public func expectAllowed<Output>(
    as token: TestToken,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column,
    _ body: (Firestore) async throws -> Output
  ) async throws -> Output? {
    do {
      return try await body(firestore(as: token))
    } catch let error as FirestoreError where error.code == .permissionDenied {
      try CallSite(fileID, filePath, line, column).record(
        FunctionsTestingError(
          .unexpectedAccess,
          "Refused, but expected to be allowed: \(lastRefusal)"
        )
      )
      return nil
    }
  }

  /// Runs `body` with an identity and checks that the security rules refuse an access.
  ///
  /// ```swift
  /// try await suite.expectDenied(as: "tom") { try await $0.document("users/tina").delete() }
  /// ```
  ///
  /// If `body` ends without a refusal, records an issue at the caller's line with the rule that
  /// allowed the last access. Outside a test of Swift Testing or XCTest it throws the issue as a
  /// `FunctionsTestingError` of the kind `unexpectedAccess`. Rethrows any error of `body` with
  /// another cause. A missing document, for example, does not count as a refusal.
  public func expectDenied<Output>(
    as token: TestToken,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column,
    _ body: (Firestore) async throws -> Output
  ) async throws {
    do {
      _ = try await body(firestore(as: token))
    } catch let error as FirestoreError where error.code == .permissionDenied {
      return
    }
    try CallSite(fileID, filePath, line, column).record(
      FunctionsTestingError(
        .unexpectedAccess,
        "Allowed, but expected to be refused: \(lastDecision)"
      )
    )
  }

  private var lastRefusal: String {
    let refusal = core.rules.decisions.first { !$0.decision.isAllowed }
    return refusal.map(Self.text) ?? "only the administrator may do this"
  }

  private var lastDecision: String {
    core.rules.decisions.first.map(Self.text) ?? "no rules were asked; load some by loadRules"
  }

  private static func text(_ recent: RecentDecision) -> String {
    "\(recent.method.rawValue) \(recent.path) as \(recent.auth.literal)\n"
      + recent.decision.text(for: recent.method, in: recent.ruleset)
  }
}
