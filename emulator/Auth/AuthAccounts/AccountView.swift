import StorageEngine

/// A consistent view of all users, valid only inside `AccountStore.read`.
package struct AccountView {
  let snapshot: any StorageSnapshot

  /// The settings of the project.
  package func settings() throws -> ProjectSettings {
    try snapshot.get(AccountRows.settings, AccountRows.settingsKey)
      .map { try AccountRows.value($0.bytes) } ?? ProjectSettings()
  }

  /// Returns a user by id; nil if there is none.
  package func user(_ localID: String) throws -> UserAccount? {
    try snapshot.get(AccountRows.users, AccountRows.userKey(localID))
      .map { try AccountRows.value($0.bytes) }
  }

  /// Returns the user that an identity belongs to; nil if it belongs to none.
  package func user(with identity: AccountIdentity) throws -> UserAccount? {
    try snapshot.get(AccountRows.identities, AccountRows.identityKey(identity))
      .flatMap { try user(String(decoding: $0.bytes, as: UTF8.self)) }
  }

  /// Returns the users who have an address, themselves or at a provider, ordered by id.
  package func users(withEmailAnywhere email: String) throws -> [UserAccount] {
    var ids: Set<String> = []
    try snapshot.scan(
      AccountRows.providerEmails,
      prefix: AccountRows.providerEmailKey(email, [])
    ) { _, row in
      ids.insert(String(decoding: row.bytes, as: UTF8.self))
      return true
    }
    if let owner = try user(with: .email(email)) { ids.insert(owner.localId) }
    return try ids.sorted().compactMap { try user($0) }
  }

  /// Calls `body` for the users in the order of their ids, until it returns false.
  ///
  /// It begins after the id `start`; nil for the first user.
  package func users(
    after start: String? = nil,
    descending: Bool = false,
    _ body: (UserAccount) throws -> Bool
  ) throws {
    // No id continues with a zero byte, so this key is between `start` and the id that follows it.
    let from = start.map { AccountRows.userKey($0) + [0] }
    try snapshot.scan(AccountRows.users, from: from, to: nil, descending: descending) { _, row in
      try body(AccountRows.value(row.bytes))
    }
  }

  /// Returns the number of users.
  package func count() throws -> Int {
    var count = 0
    try snapshot.scanKeys(AccountRows.users, from: nil, to: nil, descending: false) { _, _ in
      count += 1
      return true
    }
    return count
  }
}
