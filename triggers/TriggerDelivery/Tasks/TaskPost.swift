import HTTPTypes
import Invocation
import NIOCore
import OutboundHTTP

/// Brings tasks to servers that are no functions of the suite.
struct TaskPost: Sendable {
  let transport: any HTTPTransport

  /// Sends a task's request to an address; `completion` is called once, as by a `FunctionInvoker`.
  ///
  /// Returns a closure that ends the exchange. Of the answer's body only the beginning is read.
  func begin(
    _ request: InvocationRequest,
    to url: String,
    completion: @escaping @Sendable (Result<InvocationReply, any Error>) -> Void
  ) -> @Sendable () -> Void {
    // The dispatcher owns the task: it cancels it or waits for its completion.
    let task = Task {
      do {
        completion(.success(try await send(request, to: url)))
      } catch let error as OutboundHTTPError {
        completion(.failure(Self.failure(error, url)))
      } catch {
        completion(.failure(error))
      }
    }
    return { task.cancel() }
  }

  private func send(_ request: InvocationRequest, to url: String) async throws -> InvocationReply {
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
        timeout: request.timeout
      )
    )
    var body = ByteBuffer()
    for try await piece in response.body {
      body.writeBytes(piece.prefix(Self.answerBytesMax - body.readableBytes))
      if body.readableBytes == Self.answerBytesMax { break }
    }
    return InvocationReply(
      head: HTTPResponse(status: .init(code: response.status)),
      body: .whole(body)
    )
  }

  private static func failure(_ error: OutboundHTTPError, _ url: String) -> any Error {
    switch error.kind {
    case .cancelled: CancellationError()
    case .timedOut: InvocationError(.timedOut, "\(url) did not answer in time: \(error.message).")
    default: InvocationError(.failed, "\(url) gave no answer: \(error.message).")
    }
  }

  /// Enough of an answer for the error of a failed try.
  private static let answerBytesMax = 64 << 10
}
