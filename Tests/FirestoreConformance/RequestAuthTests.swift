import Identity
import SecurityRules
import Testing

@testable import FirestoreEmulator

/// The value of `request.auth` in rules.
@Suite("request.auth")
struct RequestAuthTests {
  private func uid(_ value: RuleValue) -> [UInt8] {
    guard case .map(let map) = value, case .string(let text)? = map["uid"] else { return [] }
    return Array(text.utf8)
  }

  @Test("Users whose ids only look alike stay apart, however often they ask")
  func lookAlike() {
    let auth = RequestAuth()
    for _ in 0..<2 {
      for id in ["\u{e9}", "e\u{301}"] {
        let user = UserIdentity(uid: id, claimsJSON: #"{"sub":"\#(id)"}"#)
        #expect(uid(auth.value(.user(user))) == Array(id.utf8))
      }
    }
  }

  @Test("Only a user has a value")
  func others() {
    for caller in [AuthContext.admin, .unauthenticated] {
      guard case .null = RequestAuth().value(caller) else {
        Issue.record("\(caller)")
        continue
      }
    }
  }
}
