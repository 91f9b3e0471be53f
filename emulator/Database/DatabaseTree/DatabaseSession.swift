package import DatabaseModel
import InvocationContext

/// The listeners, the identity and the operations on disconnect of one client.
///
/// Requests are applied in the order of the calls. Their responses are events with the numbers
/// that the caller gave. A session lasts until `close`, which its owner must call.
package final class DatabaseSession: Sendable {
  private let id: UInt64
  private let instance: DatabaseInstance

  init(id: UInt64, instance: DatabaseInstance) {
    self.id = id
    self.instance = instance
  }

  /// Adds a listener; the value precedes the response unless `hash` is that of the same view.
  package func listen(
    _ request: UInt64,
    _ path: DatabasePath,
    query: DatabaseQuery?,
    tag: Int?,
    hash: String?
  ) {
    add(request, .listen(path, query: query, tag: tag, hash: hash))
  }

  package func unlisten(_ request: UInt64, _ path: DatabasePath, query: DatabaseQuery?) {
    add(request, .unlisten(path, query: query))
  }

  package func get(_ request: UInt64, _ path: DatabasePath, query: DatabaseQuery?) {
    add(request, .get(path, query: query))
  }

  /// Applies a write; the events for the session's own listeners precede the response.
  package func write(_ request: UInt64, _ write: DatabaseWrite) {
    add(request, .write(write, cause: EventCause.current))
  }

  /// Stores a write for the end of the session, durably.
  package func onDisconnect(_ request: UInt64, _ write: DatabaseWrite) {
    add(request, .onDisconnect(write))
  }

  /// Removes the stored writes at and below a path.
  package func cancelOnDisconnect(_ request: UInt64, _ path: DatabasePath) {
    add(request, .cancelOnDisconnect(path))
  }

  /// Changes the identity, and checks the listeners again.
  package func authenticate(_ request: UInt64, as caller: DatabaseCaller) {
    add(request, .authenticate(caller))
  }

  /// Ends the session: the listeners go, and the stored writes are applied in their order.
  package func close() {
    instance.add(.close(session: id))
  }

  private func add(_ number: UInt64, _ request: SessionRequest) {
    instance.add(.session(id, request: number, request))
  }
}
