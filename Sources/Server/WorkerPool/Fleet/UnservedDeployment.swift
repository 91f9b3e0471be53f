package import Manifests
import Synchronization

/// A deployment that is stored but not served, because it is still to start or could not start.
///
/// Its functions exist but do not run. In particular, a function that decides on sign-ups refuses
/// them meanwhile.
package struct UnservedDeployment: Sendable {
  /// The functions by name; nil if the stored deployment cannot be read, so it may have any.
  package var endpoints: [String: FunctionEndpoint]?
  /// A sentence for clients that says why the functions do not run, and what to do.
  package var reason: String

  package init(endpoints: [String: FunctionEndpoint]?, reason: String) {
    self.endpoints = endpoints
    self.reason = reason
  }
}

extension WorkerFleet {
  /// The stored deployment that is not served; nil if all that is deployed is served.
  ///
  /// The server sets it before it serves clients, and clears it once the functions also receive
  /// events and tasks.
  package var unserved: UnservedDeployment? {
    get { state.withLock { $0.unserved } }
    set { state.withLock { $0.unserved = newValue } }
  }

  /// The functions by name, like `endpoints`; nil while it is unknown which functions exist.
  package var knownEndpoints: [String: FunctionEndpoint]? {
    state.withLock { state in
      if let unserved = state.unserved, unserved.endpoints == nil { return nil }
      return state.endpoints
    }
  }
}
