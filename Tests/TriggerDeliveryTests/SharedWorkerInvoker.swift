import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// Functions whose invocations share a worker that some events crash.
///
/// Isolated invocations have a worker of their own. A shared worker responds when the expected
/// number of invocations has arrived, so that a test decides which ones run together.
final class SharedWorkerInvoker: FunctionInvoker {
  private typealias Waiter = CheckedContinuation<Response, any Error>

  private struct State {
    var together: [String: [(document: String, waiter: Waiter)]] = [:]
    var runs: [String: Int] = [:]
    var sharedMax = 0
  }

  private let crowd: Int
  private let isPoison: @Sendable (String) -> Bool
  private let state = Mutex(State())

  /// Creates functions whose workers respond when `crowd` invocations share them.
  init(crowd: Int, isPoison: @escaping @Sendable (_ document: String) -> Bool) {
    self.crowd = crowd
    self.isPoison = isPoison
  }

  /// The number of runs by `{function} {document}`.
  var runs: [String: Int] { state.withLock { $0.runs } }

  func invoke(_ request: InvocationRequest) async throws -> Response {
    let document = request.head.headerFields[fieldName("ce-document")] ?? ""
    state.withLock { $0.runs["\(request.function) \(document)", default: 0] += 1 }
    if request.runsIsolated {
      if isPoison(document) { throw InvocationError(.crashed, "It trapped.") }
      return Self.success
    }
    return try await withCheckedThrowingContinuation { waiter in
      let full = state.withLock { state in
        state.together[request.function, default: []].append((document, waiter))
        let count = state.together[request.function]?.count ?? 0
        return count == crowd ? state.together.removeValue(forKey: request.function) : nil
      }
      guard let full else { return }
      let dies = full.contains { isPoison($0.document) }
      for (_, waiter) in full {
        if dies {
          waiter.resume(
            throwing: InvocationError(.crashed, "Its worker trapped.", isShared: full.count > 1)
          )
        } else {
          waiter.resume(returning: Self.success)
        }
      }
    }
  }

  private static let success = Response(
    head: HTTPResponse(status: .ok),
    body: .whole(ByteBuffer())
  )
}
