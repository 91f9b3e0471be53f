public import DocumentModel
import FirestoreClient
import Identity

/// The identity that a test acts as, in the database and when it calls a function.
///
/// ```swift
/// try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
/// try await suite.call(functions.plan, query, as: .user("tom", claims: ["role": .string("trainer")]))
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

  /// Nobody is signed in.
  public static let anonymous = TestToken(content: .nobody)

  /// The administrator of the emulator (`Bearer owner`), who has no uid.
  public static let admin = TestToken(content: .admin)

  /// A signed-in user, with the claims of the emulators' unsigned tokens and these in addition.
  ///
  /// `claims: ["admin": .boolean(true)]` passes `callers: .claim("admin")`. JSON must be
  /// able to express the values.
  public static func user(_ uid: String, claims: MapValue = [:]) -> TestToken {
    TestToken(content: .user(uid, claims: claims))
  }

  /// Any text in place of the token, such as one that must be refused.
  public static func raw(_ token: String) -> TestToken {
    TestToken(content: .raw(token))
  }

  private init(content: Content) {
    self.content = content
  }

  /// A signed-in user.
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
        return .idToken(try UnsignedToken.mint(uid: uid, project: project, claims: claims))
      } catch {
        preconditionFailure("a claim of \(uid) is not a value that JSON can express: \(error)")
      }
    }
  }

  /// The value of the `Authorization` header; nil for none.
  func authorization(project: String) -> String? {
    switch credential(project: project) {
    case .anonymous: nil
    case .admin: "Bearer owner"
    case .idToken(let token): "Bearer \(token)"
    }
  }
}
