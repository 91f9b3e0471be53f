import DequeModule
import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import OutboundHTTP
import Synchronization

/// The sender of tasks to servers that are not functions of the suite.
///
/// Each queue sends a bounded number of requests at a time, and its other requests wait in line. A
/// server that hangs therefore holds up only its own queue. The timeout of a request begins when it
/// is sent.
final class TaskSender: Sendable {
  private typealias Completion = @Sendable (Result<Response, any Error>) -> Void

  /// A task's request that is waiting or being sent.
  private struct Post: Sendable {
    var number: UInt64
    var request: InvocationRequest
    var queue: String
    var url: String
    var completion: Completion
  }

  private struct Line {
    var sending = 0
    var waiting: Deque<Post> = []
  }

  private struct State {
    var lines: [String: Line] = [:]
    var nextNumber: UInt64 = 0
    var sending: [UInt64: Task<Void, Never>] = [:]
  }

  private let transport: any HTTPTransport
  private let state = Mutex(State())

  /// The maximum number of concurrent requests of one queue.
  private static let sendingMax = 64
  /// The maximum response size: enough for the error text of a failed attempt.
  private static let answerBytesMax = 64 << 10
  /// The maximum length of an address in an error message.
  private static let addressMax = 200

  init(transport: any HTTPTransport) { self.transport = transport }

  /// Sends a task's request to an address; `completion` is called once, as by a `FunctionInvoker`.
  ///
  /// Returns a closure that cancels the request. Only the beginning of the response body is read.
  func begin(
    _ request: InvocationRequest,
    of queue: String,
    to url: String,
    completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) -> @Sendable () -> Void {
    let number = state.withLock { state in
      state.nextNumber += 1
      let number = state.nextNumber
      let post = Post(
        number: number,
        request: request,
        queue: queue,
        url: url,
        completion: completion
      )
      if state.lines[queue, default: Line()].sending < Self.sendingMax {
        state.lines[queue, default: Line()].sending += 1
        state.sending[number] = send(post)
      } else {
        state.lines[queue]?.waiting.append(post)
      }
      return number
    }
    return { [self] in
      let (task, wasWaiting) = state.withLock { state in
        let index = state.lines[queue]?.waiting.firstIndex { $0.number == number }
        if let index { state.lines[queue]?.waiting.remove(at: index) }
        return (state.sending[number], index != nil)
      }
      task?.cancel()
      if wasWaiting { completion(.failure(CancellationError())) }
    }
  }

  private func send(_ post: Post) -> Task<Void, Never> {
    // The dispatcher owns the task: it cancels the task or waits for its completion.
    Task {
      do {
        post.completion(.success(try await reply(to: post.request, post.url)))
      } catch let error as OutboundHTTPError {
        post.completion(.failure(Self.failure(error, post.url)))
      } catch {
        post.completion(.failure(error))
      }
      ended(post)
    }
  }

  private func ended(_ post: Post) {
    state.withLock { state in
      state.sending[post.number] = nil
      if let next = state.lines[post.queue]?.waiting.popFirst() {
        state.sending[next.number] = send(next)
        return
      }
      state.lines[post.queue]?.sending -= 1
      if state.lines[post.queue]?.sending == 0 { state.lines[post.queue] = nil }
    }
  }

  private func reply(to request: InvocationRequest, _ url: String) async throws
    -> Response
  {
    var headers = OutboundHeaders()
    for field in request.head.headerFields
    where !field.name.canonicalName.hasPrefix("x-hearth-") {
      headers.append(field.name.rawName, field.value)
    }
    headers["user-agent"] = "Google-Cloud-Tasks"
    let response = try await transport.stream(
      OutboundRequest(
        method: request.head.method.rawValue,
        url: url,
        headers: headers,
        body: Array(request.wholeBody.readableBytesView),
        timeout: request.timeout,
        // A pooled connection that the server has closed in the meantime would cost the task an
        // attempt.
        usesFreshConnection: true
      )
    )
    var body = ByteBuffer()
    for try await piece in response.body {
      body.writeBytes(piece.prefix(Self.answerBytesMax - body.readableBytes))
      if body.readableBytes == Self.answerBytesMax { break }
    }
    return Response(
      head: HTTPResponse(status: .init(code: response.status)),
      body: .whole(body)
    )
  }

  private static func failure(_ error: OutboundHTTPError, _ url: String) -> any Error {
    let url = url.prefix(addressMax)
    return switch error.kind {
    case .cancelled: CancellationError()
    case .timedOut: InvocationError(.timedOut, "\(url) did not answer in time: \(error.message).")
    default: InvocationError(.failed, "\(url) gave no answer: \(error.message).")
    }
  }
}
