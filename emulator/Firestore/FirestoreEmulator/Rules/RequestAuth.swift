import Identity
import SecurityRules
import Synchronization

/// The value of `request.auth` in rules, kept for users who send further requests.
final class RequestAuth: Sendable {
  /// The maximum number of tokens whose claims are kept; then all are forgotten.
  private static let countMax = 256

  // By the bytes of the claims, because different bytes can be equal texts.
  private let known = Mutex<[[UInt8]: RuleValue]>([:])

  /// Returns `uid` and `token` of a user; null for other callers.
  func value(_ auth: AuthContext) -> RuleValue {
    guard case .user(let user) = auth else { return .null }
    let key = Array(user.claimsJSON.utf8)
    if let value = known.withLock({ $0[key] }) { return value }
    let value = RuleValue.map(
      .entries(["uid": .string(user.uid), "token": ClaimsReader.value(user.claimsJSON)])
    )
    known.withLock { known in
      if known.count >= Self.countMax { known.removeAll() }
      known[key] = value
    }
    return value
  }
}
