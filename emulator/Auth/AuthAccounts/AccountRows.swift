import DocumentModel
import JSONText
import StorageEngine

/// The storage format of users, of what identifies them, and of the project's settings.
enum AccountRows {
  static let users = Keyspace("auth_users")
  /// The ids of users by address, telephone number and account at an identity provider.
  static let identities = Keyspace("auth_identities")
  /// The ids of users by the addresses of their accounts at identity providers.
  ///
  /// Several users may have accounts with the same address.
  static let providerEmails = Keyspace("auth_provider_emails")
  static let settings = Keyspace("auth_settings", .few)

  static let settingsKey = Array("config".utf8)
  /// The key of the secret with which refresh tokens are signed.
  static let secretKey = Array("secret".utf8)

  static func userKey(_ localID: String) -> [UInt8] { Array(localID.utf8) }

  static func identityKey(_ identity: AccountIdentity) -> [UInt8] {
    var key = KeyEncoder()
    for text in identity.parts { key.append(text: text) }
    return key.bytes
  }

  /// Returns the key of a user's address at a provider; with an empty id, the keys' prefix.
  static func providerEmailKey(_ email: String, _ userKey: [UInt8]) -> [UInt8] {
    var key = KeyEncoder()
    key.append(text: email)
    key.append(raw: userKey)
    return key.bytes
  }

  static func value<Value: Decodable>(
    _ bytes: [UInt8],
    as type: Value.Type = Value.self
  ) throws(CorruptDataError) -> Value {
    do {
      return try type.init(decodingJSON: bytes)
    } catch {
      throw CorruptDataError("a row of Auth is not a \(type)")
    }
  }
}

/// A property that belongs to at most one user.
///
/// The texts are in the form that `AccountChecks` returns.
package enum AccountIdentity: Sendable, Hashable {
  case email(String)
  case phoneNumber(String)
  case provider(String, rawID: String)

  var parts: [String] {
    switch self {
    case .email(let email): ["email", email]
    case .phoneNumber(let number): ["phone", number]
    case .provider(let id, let rawID): ["provider", id, rawID]
    }
  }
}

extension UserAccount {
  /// The addresses of the user's accounts at identity providers, in lower case.
  var providerEmails: Set<String> {
    let others = (providerUserInfo ?? []).filter { $0.providerId != ProviderAccount.password }
    return Set(others.compactMap { $0.email.map { AccountChecks.composed($0.lowercased()) } })
  }

  /// What identifies the user beside the id.
  package var identities: Set<AccountIdentity> {
    var identities: Set<AccountIdentity> = []
    if let email { identities.insert(.email(email)) }
    if let phoneNumber { identities.insert(.phoneNumber(phoneNumber)) }
    for provider in providerUserInfo ?? [] {
      guard let rawID = provider.rawId, provider.providerId != ProviderAccount.password,
        provider.providerId != ProviderAccount.phone
      else { continue }
      identities.insert(.provider(provider.providerId, rawID: rawID))
    }
    return identities
  }
}
