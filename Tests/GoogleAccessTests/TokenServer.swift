import Foundation
import OutboundHTTP
import Synchronization

/// An in-memory token endpoint that numbers its tokens, and fails or waits on demand.
final class TokenServer: HTTPTransport {
  private struct State {
    var faults: [Fault] = []
    var requests: [OutboundRequest] = []
    var issued = 0
    var isHeld = false
    var held: [CheckedContinuation<Void, Never>] = []
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  enum Fault {
    case status(Int, String)
    case noAnswer(OutboundHTTPError.Kind)
  }

  private let state = Mutex(State())
  let lifetimeSeconds: Int

  init(lifetimeSeconds: Int = 3600) { self.lifetimeSeconds = lifetimeSeconds }

  var requests: [OutboundRequest] { state.withLock { $0.requests } }

  func fail(_ faults: Fault...) { state.withLock { $0.faults += faults } }

  /// Makes requests wait until `release`.
  func hold() { state.withLock { $0.isHeld = true } }

  func release() {
    let held = state.withLock { state in
      state.isHeld = false
      defer { state.held = [] }
      return state.held
    }
    for waiter in held { waiter.resume() }
  }

  /// Returns once a request is waiting.
  func heldRequest() async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if !state.held.isEmpty { return true }
        state.watchers.append(continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    await withCheckedContinuation { continuation in
      let (goes, watchers) = state.withLock {
        state -> (Bool, [CheckedContinuation<Void, Never>]) in
        state.requests.append(request)
        guard state.isHeld else { return (true, []) }
        state.held.append(continuation)
        defer { state.watchers = [] }
        return (false, state.watchers)
      }
      if goes { continuation.resume() }
      for watcher in watchers { watcher.resume() }
    }
    if Task.isCancelled { throw OutboundHTTPError(.cancelled, "cancelled") }
    return try state.withLock { state in
      guard state.faults.isEmpty else {
        switch state.faults.removeFirst() {
        case .status(let status, let body):
          return OutboundResponse(status: status, body: Array(body.utf8))
        case .noAnswer(let kind): throw OutboundHTTPError(kind, "h: no")
        }
      }
      state.issued += 1
      let body =
        #"{"access_token":"token-\#(state.issued)","expires_in":\#(lifetimeSeconds),"#
        + #""token_type":"Bearer"}"#
      return OutboundResponse(status: 200, body: Array(body.utf8))
    }
  }
}

/// A clock that a test sets, and a record of the requested waits.
final class TestTime: Sendable {
  private let state = Mutex((now: Date(timeIntervalSince1970: 1_795_244_400), waits: [Duration]()))

  var now: Date { state.withLock { $0.now } }
  var waits: [Duration] { state.withLock { $0.waits } }

  func advance(seconds: Double) { state.withLock { $0.now += seconds } }
  func sleep(_ duration: Duration) { state.withLock { $0.waits.append(duration) } }
}
