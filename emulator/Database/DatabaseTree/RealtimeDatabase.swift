package import DatabaseModel
package import DatabaseRules

/// All instances of the Realtime Database, each with a tree, rules and clients of its own.
package final class RealtimeDatabase: Sendable {
  package init() {}

  /// Returns an instance by name, which exists as soon as something uses it.
  package func instance(_ name: String) -> DatabaseInstance {
    DatabaseInstance(name: name)
  }

  /// The names of the instances that have data, rules or clients, sorted.
  package func instanceNames() async throws -> [String] { [] }
}

/// One instance of the Realtime Database.
package final class DatabaseInstance: Sendable {
  package let name: String

  init(name: String) {
    self.name = name
  }

  /// The rules; nil if none were given, and then everything is allowed.
  package var rules: DatabaseRuleset? { nil }

  /// Puts rules into force and checks all listeners again.
  package func setRules(_ rules: DatabaseRuleset?) async {}

  /// Returns the node at a path, or the children that a query selects.
  ///
  /// Throws a `DatabaseError`, of kind `.missingIndex` if the query needs an index.
  package func read(
    _ path: DatabasePath,
    query: DatabaseQuery? = nil,
    as caller: DatabaseCaller
  ) async throws -> DatabaseNode { .empty }

  /// Returns the keys of the children, or the leaf at the path.
  package func readShallow(
    _ path: DatabasePath,
    startAfter: String? = nil,
    limit: Int? = nil,
    as caller: DatabaseCaller
  ) async throws -> ShallowNode { .leaf(nil) }

  package enum ShallowNode: Sendable {
    case leaf(DatabaseLeaf?)
    case keys([String])
  }

  /// Applies a write and returns once it is durable and all listeners have been notified.
  ///
  /// `check` gets the node at the write's path before the write, at the write's own moment, and may
  /// throw to refuse it. Returns the node at the path afterwards if `returnsNode`.
  @discardableResult
  package func write(
    _ write: DatabaseWrite,
    as caller: DatabaseCaller,
    returnsNode: Bool = false,
    check: (@Sendable (DatabaseNode) throws -> Void)? = nil
  ) async throws -> DatabaseNode { .empty }

  /// Opens a session, whose events go to `send`, in order and one after the other.
  ///
  /// `send` must not block. It returns the number of bytes that wait for the client, so that a
  /// session whose client does not read is ended.
  package func open(
    as caller: DatabaseCaller,
    send: @escaping @Sendable (DatabaseSessionEvent) -> Void
  ) -> DatabaseSession { DatabaseSession() }
}

/// The listeners, the identity and the operations on disconnect of one client.
///
/// Requests are applied in the order of the calls. Their responses are events with the numbers
/// that the caller gave.
package final class DatabaseSession: Sendable {
  /// Adds a listener; the value precedes the response unless `hash` is that of the same view.
  package func listen(
    _ request: UInt64,
    _ path: DatabasePath,
    query: DatabaseQuery?,
    tag: Int?,
    hash: String?
  ) {}

  package func unlisten(_ request: UInt64, _ path: DatabasePath, query: DatabaseQuery?) {}

  package func get(_ request: UInt64, _ path: DatabasePath, query: DatabaseQuery?) {}

  package func write(_ request: UInt64, _ write: DatabaseWrite) {}

  /// Stores a write for the end of the session.
  package func onDisconnect(_ request: UInt64, _ write: DatabaseWrite) {}

  /// Removes the stored writes at and below a path.
  package func cancelOnDisconnect(_ request: UInt64, _ path: DatabasePath) {}

  /// Changes the identity, and checks the listeners again.
  package func authenticate(_ request: UInt64, as caller: DatabaseCaller) {}

  /// Ends the session: the listeners go, and the stored writes are applied in their order.
  package func close() {}
}
