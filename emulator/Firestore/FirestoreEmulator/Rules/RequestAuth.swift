import FlowControl
import Identity
import SecurityRules

/// The value of `request.auth` in rules, kept for users who send further requests.
final class RequestAuth: Sendable {
  /// The maximum number of tokens whose claims are kept; then all are forgotten.
  private static let countMax = 256

  // By the bytes of the claims, because different bytes can be equal texts.
  private let known = BoundedCache<[UInt8], RuleValue>(countMax: RequestAuth.countMax)

  /// Returns `uid` and `token` of a user; null for other callers.
  func value(_ auth: AuthContext) -> RuleValue {
    guard case .user(let user) = auth else { return .null }
    return known.value(of: Array(user.claimsJSON.utf8)) {
      .map(.entries(["uid": .string(user.uid), "token": ClaimsReader.value(user.claimsJSON)]))
    }
  }
}
