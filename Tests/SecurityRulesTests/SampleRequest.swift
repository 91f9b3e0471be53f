import DocumentModel
import Foundation

@testable import SecurityRules

/// The request for which the table's expressions were evaluated.
///
/// Alice gets a document that has a field of each type.
enum SampleRequest {
  static func verdict(of expression: String) -> String {
    let text = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{db}/documents {
          match /t/{id} { allow get: if \(expression); }
          match /{rest=**} { allow delete: if false; }
        }
      }

      """
    let ruleset: Ruleset
    do { ruleset = try Ruleset(name: "f.rules", content: text) } catch { return "refused" }
    let decision = ruleset.decide(
      request,
      documents: Documents(),
      ledger: AccessLedger(isSingle: true)
    )
    if decision.isAllowed { return "allow" }
    return decision.answers.last?.outcome == .isFalse ? "deny" : "error"
  }

  private static let database = DatabaseName(project: "p")
  private static let name = DocumentName(
    database: database,
    path: ResourcePath(slashSeparated: "t/x")
  )

  private static let fields: MapValue = [
    "n": .integer(1), "f": .double(1.5), "nan": .double(.nan), "inf": .double(.infinity),
    "s": .string("text"), "e": .string(""), "b": .bytes([0, 255, 16]),
    "t": .timestamp(Timestamp("2024-02-29T12:34:56.789Z") ?? Timestamp(microseconds: 0)),
    "g": .geoPoint(GeoPoint(latitude: 52.5, longitude: 13.4)), "r": .reference(name),
    "l": .array([.integer(1), .string("a"), .boolean(true), .null]),
    "m": .map(["a": .integer(1), "b": .map(["c": .string("d")])]), "z": .null,
    "yes": .boolean(true), "el": .array([]), "em": .map([:]), "v": .vector([1, 2, 3]),
  ]

  static let resource = RuleValue.map(
    .entries([
      "data": .map(.fields(fields)), "id": .string("x"), "__name__": .path(RulePath(name)),
    ])
  )

  private static let claims: MapValue = [
    "sub": .string("alice"), "user_id": .string("alice"), "email": .string("alice@x.de"),
    "email_verified": .boolean(true), "admin": .boolean(true), "level": .integer(5),
    "ratio": .double(0.5), "roles": .array([.string("a"), .string("b")]),
    "firebase": .map(["sign_in_provider": .string("password")]),
  ]

  static let request = RulesRequest(
    method: .get,
    path: ["databases", "(default)", "documents", "t", "x"].map { .known($0) },
    time: RuleTimestamp(Timestamp(microseconds: 1_800_000_000_123_000)),
    auth: .map(.entries(["uid": .string("alice"), "token": .map(.fields(claims))])),
    resource: resource
  )

  private struct Documents: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
      guard path.segments.starts(with: ["databases", "(default)", "documents"]),
        path.segments.count.isMultiple(of: 2) == false, path.segments.count > 3,
        !path.segments.contains(where: \.isEmpty)
      else { throw InvalidPathError() }
      return path.segments.suffix(2) == ["t", "x"] && path.segments.count == 5 ? resource : nil
    }
  }

  private struct InvalidPathError: Error {}
}
