import Invocation
package import Manifests
import Synchronization

/// A deployment that is not served, because it is still to start or could not start.
///
/// It is stored, or the first one, which is still to be made. Its functions exist but do not run.
/// In particular, a function that decides on sign-ups refuses them meanwhile.
package struct UnservedDeployment: Sendable {
  /// The functions by name; nil if it may have any.
  ///
  /// They are unknown if the stored deployment cannot be read, or if it is still to be made.
  package var endpoints: [String: FunctionEndpoint]?
  /// True if it is the first deployment, which is still to be made, so that none is stored.
  package var isFirst: Bool
  /// A sentence for clients that says why the functions do not run, and what to do.
  package var reason: String

  package init(endpoints: [String: FunctionEndpoint]?, isFirst: Bool = false, reason: String) {
    self.endpoints = endpoints
    self.isFirst = isFirst
    self.reason = reason
  }
}

extension WorkerFleet {
  /// The deployment that is not served; nil if all that is deployed is served.
  ///
  /// The server sets it before it serves clients, and clears it once the functions also receive
  /// events and tasks.
  package var unserved: UnservedDeployment? {
    get { state.withLock { $0.unserved } }
    set { state.withLock { $0.unserved = newValue } }
  }

  /// Serves without functions from now on if the first deployment, which failed, is unserved.
  ///
  /// A fleet that stops still waits for it: the stop may be why it failed.
  package func giveUpFirstDeployment() {
    state.withLock { state in
      guard !state.isStopping, state.unserved?.isFirst == true else { return }
      state.unserved = nil
    }
  }

  /// The functions by name, like `endpoints`.
  ///
  /// Throws `unserved` while it is unknown which functions exist.
  package var knownEndpoints: [String: FunctionEndpoint] {
    get throws(InvocationError) {
      let (unserved, endpoints) = state.withLock { ($0.unserved, $0.endpoints) }
      if let unserved, unserved.endpoints == nil {
        throw InvocationError(.unserved, unserved.reason)
      }
      return endpoints
    }
  }
}
