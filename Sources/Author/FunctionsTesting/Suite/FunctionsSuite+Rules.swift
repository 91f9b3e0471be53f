public import FirestoreClient
import FirestoreEmulator
import Foundation
import RuntimeSupport
import SecurityRules

extension FunctionsSuite {
  /// Puts security rules in force for everybody but the server client, which they do not concern.
  ///
  /// Until then everything is allowed. Throws `invalidRules` with all that is wrong, by line and
  /// column; the former rules then stay.
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

  /// Puts the security rules of a file in force, such as the project's `firestore.rules`.
  ///
  /// Throws `invalidRules` when the file cannot be read, and as `loadRules(_:name:)` does.
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

  /// Runs `body` as somebody, whom the security rules must allow all of it.
  ///
  /// ```swift
  /// try await suite.expectAllowed(as: "tina") { try await $0.document("users/tina").get() }
  /// ```
  ///
  /// Throws `unexpectedAccess` when they refuse, with the rule, the part of it that was false and
  /// its values; and what else `body` throws.
  @discardableResult
  public func expectAllowed<Output>(
    as token: TestToken,
    _ body: (Firestore) async throws -> Output
  ) async throws -> Output {
    do {
      return try await body(firestore(as: token))
    } catch let error as FirestoreError where error.code == .permissionDenied {
      throw FunctionsTestingError(.unexpectedAccess, "Refused, but expected: \(lastRefusal)")
    }
  }

  /// Runs `body` as somebody, whom the security rules must refuse some of it.
  ///
  /// ```swift
  /// try await suite.expectDenied(as: "tom") { try await $0.document("users/tina").delete() }
  /// ```
  ///
  /// Throws `unexpectedAccess` when `body` ends without being refused, and what it throws for another
  /// reason: a document that is missing is no refusal.
  public func expectDenied(
    as token: TestToken,
    _ body: (Firestore) async throws -> Void
  ) async throws {
    do {
      try await body(firestore(as: token))
    } catch let error as FirestoreError where error.code == .permissionDenied {
      return
    }
    throw FunctionsTestingError(
      .unexpectedAccess,
      "Allowed, but expected to be refused: \(lastDecision)"
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
