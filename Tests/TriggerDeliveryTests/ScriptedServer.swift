import OutboundHTTP
import Synchronization

/// A server in memory that answers with given statuses, one after the other.
final class ScriptedServer: HTTPTransport {
  private let statuses: [Int]
  private let received = Mutex<[OutboundRequest]>([])

  /// A server whose `n`th answer has the `n`th status; past the last one nobody answers.
  init(_ statuses: [Int]) { self.statuses = statuses }

  /// Every request so far.
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
