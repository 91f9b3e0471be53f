package import StorageEngine

/// The users and the settings of one moment, in their stored form.
package struct AccountSnapshot: Sendable {
  private let users: [[UInt8]]
  package let settings: ProjectSettings

  /// Copies the users from a view of the storage, whose time does not suffice to decode them.
  package init(_ snapshot: any StorageSnapshot) throws {
    var users: [[UInt8]] = []
    try snapshot.scan(AccountRows.users, from: nil, to: nil, descending: false) { _, row in
      users.append(row.bytes)
      return true
    }
    self.users = users
    settings = try AccountView(snapshot: snapshot).settings()
  }

  /// Calls `body` for all users in the order of their ids.
  package func forEachUser(_ body: (UserAccount) throws -> Void) throws {
    for row in users { try body(AccountRows.value(row)) }
  }
}
