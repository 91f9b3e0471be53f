import FirestoreClient
import Synchronization

/// A source of tokens `t1`, `t2` and so on, which renews a token only if it was refused.
final class ScriptedTokens: IDTokenSource {
  struct SignedOutError: Error {}

  private struct State {
    var number = 1
    var failures: [any Error]
    var rejected: [String] = []
  }

  private let state: Mutex<State>
  private let renewals: Int

  /// Creates a source that renews its token `renewals` times.
  ///
  /// Its first requests throw `failures`.
  init(renewals: Int = .max, failures: [any Error] = []) {
    self.renewals = renewals
    state = Mutex(State(failures: failures))
  }

  /// The refused tokens that it was asked to replace.
  var rejected: [String] { state.withLock { $0.rejected } }

  func idToken(replacing rejected: String?) async throws -> String {
    try state.withLock { state in
      if !state.failures.isEmpty { throw state.failures.removeFirst() }
      if let rejected {
        state.rejected.append(rejected)
        if state.number <= renewals, rejected == "t\(state.number)" { state.number += 1 }
      }
      return "t\(state.number)"
    }
  }
}
