public import DocumentModel
import FirestoreClient
import Identity

/// The identity with which a test accesses the database or calls a function.
///
/// ```swift
/// try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
/// let trainer = TestToken.user("tom", claims: ["role": .string("trainer")])
/// try await suite.call(functions.plan, query, as: trainer)
/// ```
///
/// A string literal is a user's id: `suite.firestore(as: "tina")`.
public struct TestToken: Sendable, Hashable, ExpressibleByStringLiteral {
  private enum Content: Hashable {
    case nobody
    case admin
    case user(String, claims: MapValue)
    case raw(String)
  }

  private let content: Content

  /// A caller who is not signed in.
  public static let anonymous = TestToken(content: .nobody)

  /// The administrator of the emulator (`Bearer owner`), who has no uid.
  public static let admin = TestToken(content: .admin)

  /// Returns a signed-in user, whose token has additional claims.
  ///
  /// The other claims are those of the emulators' unsigned tokens. `claims: ["admin":
  /// .boolean(true)]` satisfies `callers: .claim("admin")`. A value that JSON cannot represent
  /// stops the test's process when the token is used.
  public static func user(_ uid: String, claims: MapValue = [:]) -> TestToken {
    TestToken(content: .user(uid, claims: claims))
  }

  /// Returns an identity with any text as its token, for example an invalid token.
  public static func raw(_ token: String) -> TestToken {
    TestToken(content: .raw(token))
  }

  private init(content: Content) {
    self.content = content
  }

  /// Creates a signed-in user from a literal user id.
  public init(stringLiteral uid: String) {
    self = .user(uid)
  }

  func credential(project: String) -> FirestoreCredential {
    switch content {
    case .nobody: return .anonymous
    case .admin: return .admin
    case .raw(let token): return .idToken(token)
    case .user(let uid, let claims):
      do {
        return .idToken(try UnsignedTokenIssuer.issue(uid: uid, project: project, claims: claims))
      } catch {
        preconditionFailure("a claim of \(uid) is not a value that JSON can express: \(error)")
      }
    }
  }

  /// Returns the value of the `Authorization` header; nil for no header.
  func authorization(project: String) -> String? {
    switch credential(project: project) {
    case .anonymous: nil
    case .admin: "Bearer owner"
    case .idToken(let token): "Bearer \(token)"
    }
  }
}
