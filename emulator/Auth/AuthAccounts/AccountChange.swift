import Events
import JSONText
import StorageEngine

/// A change of users that is committed completely or not at all.
///
/// Everything that is read through a change must still be so when it is committed. Otherwise
/// `AccountStore.change` runs again, so that of two requests for one address exactly one wins.
package struct AccountChange {
  private let view: AccountView
  private(set) var expectations: Set<VersionExpectation> = []
  private(set) var events: [(UserEvent, UserAccount)] = []
  // By the bytes of their ids, because different bytes can be equal texts.
  private var users: [[UInt8]: UserAccount?] = [:]
  /// The users as they were before the change.
  private var stored: [[UInt8]: UserAccount] = [:]
  private var identities: [AccountIdentity: String?] = [:]
  private var newSettings: ProjectSettings?

  init(_ view: AccountView) { self.view = view }

  /// The settings of the project.
  package var settings: ProjectSettings {
    mutating get throws {
      if let newSettings { return newSettings }
      let key = AccountRows.settingsKey
      let row = try view.snapshot.get(AccountRows.settings, key)
      expectations.insert(VersionExpectation(AccountRows.settings, key, version: row?.version))
      return try row.map { try AccountRows.value($0.bytes) } ?? ProjectSettings()
    }
  }

  /// Replaces the settings of the project.
  package mutating func set(_ settings: ProjectSettings) { newSettings = settings }

  /// Returns a user by id; nil if there is none.
  package mutating func user(_ localID: String) throws -> UserAccount? {
    let key = AccountRows.userKey(localID)
    if let user = users[key] { return user }
    let row = try view.snapshot.get(AccountRows.users, key)
    expectations.insert(VersionExpectation(AccountRows.users, key, version: row?.version))
    let user: UserAccount? = try row.map { try AccountRows.value($0.bytes) }
    stored[key] = user
    return user
  }

  /// Returns the user that an identity belongs to; nil if it belongs to none.
  package mutating func user(with identity: AccountIdentity) throws -> UserAccount? {
    try owner(of: identity).flatMap { try user($0) }
  }

  private mutating func owner(of identity: AccountIdentity) throws -> String? {
    if let owner = identities[identity] { return owner }
    let key = AccountRows.identityKey(identity)
    let row = try view.snapshot.get(AccountRows.identities, key)
    expectations.insert(VersionExpectation(AccountRows.identities, key, version: row?.version))
    return row.map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  /// Creates or replaces a user, with what identifies it.
  ///
  /// Throws an `AuthError` if an identity belongs to another user. `event` is for the functions.
  package mutating func put(_ account: UserAccount, event: UserEvent? = nil) throws {
    var account = account
    account.updateOwnProviders()
    let before = try user(account.localId)
    for identity in before?.identities ?? [] where !account.identities.contains(identity) {
      // An owner other than this user has taken the identity in this change.
      if try owner(of: identity) == account.localId { identities[identity] = .some(nil) }
    }
    for identity in account.identities {
      let owner = try owner(of: identity)
      guard owner == nil || owner == account.localId else { throw identity.takenError }
      if owner == nil { identities[identity] = account.localId }
    }
    users[AccountRows.userKey(account.localId)] = account
    if let event { events.append((event, account)) }
  }

  /// Deletes a user, with what identifies it.
  package mutating func delete(_ account: UserAccount, event: UserEvent? = nil) throws {
    guard let stored = try user(account.localId) else { return }
    for identity in stored.identities where try owner(of: identity) == stored.localId {
      identities[identity] = .some(nil)
    }
    users[AccountRows.userKey(stored.localId)] = .some(nil)
    if let event { events.append((event, stored)) }
  }

  /// The changes as a batch of the storage engine.
  func batch() throws -> StorageBatch {
    var batch = StorageBatch()
    for (key, user) in users {
      if let user {
        batch.put(AccountRows.users, key, try user.jsonBytes())
      } else {
        batch.delete(AccountRows.users, key)
      }
      let (old, new) = (stored[key]?.providerEmails ?? [], user?.providerEmails ?? [])
      for email in old.subtracting(new) {
        batch.delete(
          AccountRows.providerEmails,
          AccountRows.providerEmailKey(email, key)
        )
      }
      for email in new.subtracting(old) {
        batch.put(
          AccountRows.providerEmails,
          AccountRows.providerEmailKey(email, key),
          key
        )
      }
    }
    for (identity, owner) in identities {
      let key = AccountRows.identityKey(identity)
      if let owner {
        batch.put(AccountRows.identities, key, Array(owner.utf8))
      } else {
        batch.delete(AccountRows.identities, key)
      }
    }
    if let newSettings {
      batch.put(
        AccountRows.settings,
        AccountRows.settingsKey,
        try newSettings.jsonBytes()
      )
    }
    return batch
  }
}

extension AccountIdentity {
  /// The error for an identity that belongs to another user.
  var takenError: AuthError {
    switch self {
    case .email: AuthError("EMAIL_EXISTS")
    case .phoneNumber: AuthError("PHONE_NUMBER_EXISTS")
    case .provider: AuthError("FEDERATED_USER_ID_ALREADY_LINKED")
    }
  }
}
