import OutboundHTTP
import Synchronization

/// An in-memory server that responds with the given statuses in order.
final class ScriptedServer: HTTPTransport {
  private let statuses: [Int]
  private let received = Mutex<[OutboundRequest]>([])

  /// Creates a server whose `n`th response has the `n`th status; later requests fail.
  init(_ statuses: [Int]) { self.statuses = statuses }

  /// All requests so far.
  var requests: [OutboundRequest] { received.withLock { $0 } }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let number = received.withLock { received in
      received.append(request)
      return received.count
    }
    guard number <= statuses.count else {
      throw OutboundHTTPError(.cannotConnect, "nobody listens at \(request.url)")
    }
    return OutboundResponse(
      status: statuses[number - 1],
      body: Array("answer \(number)".utf8)
    )
  }
}

/// An in-memory server that responds to `/hang` only when a test releases it.
final class HangingServer: HTTPTransport {
  private struct State {
    var urls: [String] = []
    var hanging: [CheckedContinuation<Void, Never>] = []
    var released = 0
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  /// The URLs of all requests so far.
  var urls: [String] { state.withLock { $0.urls } }

  /// Returns once `count` requests have arrived.
  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.urls.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  /// Responds to the next `count` hanging requests.
  func release(_ count: Int) {
    let hanging = state.withLock { state in
      let released = Array(state.hanging.prefix(count))
      state.hanging.removeFirst(released.count)
      state.released += count - released.count
      return released
    }
    for continuation in hanging { continuation.resume() }
  }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let waiters = state.withLock { state in
      state.urls.append(request.url)
      let waiters = state.waiters.filter { $0.count <= state.urls.count }
      state.waiters.removeAll { $0.count <= state.urls.count }
      return waiters
    }
    for waiter in waiters { waiter.continuation.resume() }
    guard request.url.hasSuffix("/hang") else { return OutboundResponse(status: 200) }
    await withCheckedContinuation { continuation in
      let isReleased = state.withLock { state in
        if state.released > 0 {
          state.released -= 1
          return true
        }
        state.hanging.append(continuation)
        return false
      }
      if isReleased { continuation.resume() }
    }
    return OutboundResponse(status: 200)
  }
}
