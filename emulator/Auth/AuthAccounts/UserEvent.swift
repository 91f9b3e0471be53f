package import DocumentModel
package import Events
import Identifiers
import JSONText

/// An event in the life of a user, for functions.
package enum UserEvent: String, Sendable, Hashable {
  case created, deleted

  /// The CloudEvents type, to which the types of the first generation are converted.
  package var type: String { "google.firebase.auth.user.v1.\(rawValue)" }

  /// Returns the event of a user at a time.
  ///
  /// Its data is the user record of the first generation in the form of CloudEvents, whose
  /// `metadata` has `createTime` and `lastSignInTime`.
  package func cloudEvent(
    of account: UserAccount,
    project: String,
    time: Timestamp
  ) -> CloudEvent {
    CloudEvent(
      id: RandomID.make(length: 22),
      source: "//firebaseauth.googleapis.com/projects/\(project)",
      type: type,
      subject: "users/\(account.localId)",
      time: "\(time)",
      dataContentType: "application/json",
      data: Self.data(of: account)
    )
  }

  private static func data(of account: UserAccount) -> [UInt8] {
    var data = JSONObjectText()
    data.set("uid", account.localId)
    data.set("email", account.email)
    data.set("emailVerified", account.emailVerified ?? false)
    data.set("displayName", account.displayName)
    data.set("photoURL", account.photoUrl)
    data.set("phoneNumber", account.phoneNumber)
    data.set("disabled", account.isDisabled)
    var metadata = JSONObjectText()
    metadata.set("createTime", account.createdAt.flatMap(Self.time))
    metadata.set("lastSignInTime", account.lastLoginAt.flatMap(Self.time))
    data.set("metadata", metadata)
    if let claims = JSONObjectText(parsing: account.customClaims), !claims.isEmpty {
      data.set("customClaims", claims)
    }
    let providers = (account.providerUserInfo ?? []).map { provider in
      var member = JSONObjectText()
      member.set("providerId", provider.providerId)
      member.set("uid", provider.rawId)
      member.set("email", provider.email)
      member.set("displayName", provider.displayName)
      member.set("photoURL", provider.photoUrl)
      member.set("phoneNumber", provider.phoneNumber)
      return member.bytes
    }
    data.set("providerData", json: JSONObjectText.array(providers))
    data.set("tenantId", account.tenantId)
    return data.bytes
  }

  /// Returns a time in milliseconds as RFC 3339.
  private static func time(_ milliseconds: String) -> String? {
    guard let time = Int64(milliseconds), abs(time) < 1 << 50 else { return nil }
    return "\(Timestamp(microseconds: time * 1000))"
  }
}
