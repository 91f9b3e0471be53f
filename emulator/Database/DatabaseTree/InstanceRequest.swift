import DatabaseModel
import DatabaseRules
import Identity

/// A request that an instance processes in its turn.
enum InstanceRequest: Sendable {
  case open(session: UInt64, caller: DatabaseCaller, EventSink)
  case session(UInt64, request: UInt64, SessionRequest)
  case close(session: UInt64)
  /// A long read has ended.
  case loaded(LongRead, Result<LongRead.Value, DatabaseError>)
  case write(SingleWrite)
  /// The rules have changed.
  case recheck(CheckedContinuation<Void, Never>)
  /// The sessions of an earlier process have ended.
  case endEarlierSessions([DisconnectRows.Row])
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

/// A read that is done beside the rounds, so that nobody waits for it but its session.
struct LongRead: Sendable {
  var session: UInt64
  var request: UInt64
  var path: DatabasePath
  /// The query; nil for all children.
  var query: DatabaseQuery?
  /// The query as the client gave it, about which the rules decide.
  var ruledQuery: DatabaseQuery?
  var caller = DatabaseCaller(.unauthenticated)
  /// The listener whose first value is read; nil for a single read.
  var listener: UInt64?
  /// The message for a query whose index is missing.
  var missingIndex: String?
  var hash: String?

  struct Value: Sendable {
    /// The last commit that the value shows.
    var sequence: UInt64
    var node: DatabaseNode
    var window: QueryWindow?
  }

  /// Reads the value from a tree.
  func value(in view: TreeView, sequence: UInt64) throws -> Value {
    guard let query else {
      return Value(sequence: sequence, node: try view.node(at: path), window: nil)
    }
    let window = try QueryWindow(query, at: path, in: view)
    return Value(sequence: sequence, node: try window.node(in: view), window: window)
  }
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
