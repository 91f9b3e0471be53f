import DatabaseModel
import DatabaseRules

/// A request that an instance processes in its turn.
enum InstanceRequest: Sendable {
  case open(session: UInt64, caller: DatabaseCaller, EventSink)
  case session(UInt64, request: UInt64, SessionRequest)
  case close(session: UInt64)
  case write(SingleWrite)
  /// The rules have changed.
  case recheck(CheckedContinuation<Void, Never>)
  /// The sessions of an earlier process have ended.
  case endEarlierSessions([DisconnectRows.Row])
  /// All data has gone.
  case reload(CheckedContinuation<Void, Never>)
}

/// A request of a session.
enum SessionRequest: Sendable {
  case listen(DatabasePath, query: DatabaseQuery?, tag: Int?, hash: String?)
  case unlisten(DatabasePath, query: DatabaseQuery?)
  case get(DatabasePath, query: DatabaseQuery?)
  case write(DatabaseWrite, cause: String?)
  case onDisconnect(DatabaseWrite)
  case cancelOnDisconnect(DatabasePath)
  case authenticate(DatabaseCaller)
}

/// A write outside of any session.
struct SingleWrite: Sendable {
  var write: DatabaseWrite
  var caller: DatabaseCaller
  var cause: String?
  var returnsNode: Bool
  var check: (@Sendable (DatabaseNode) throws -> Void)?
  var continuation: CheckedContinuation<DatabaseNode, any Error>
}

/// The receiver of a session's events.
struct EventSink: Sendable {
  var send: @Sendable (DatabaseSessionEvent) -> Void
}
