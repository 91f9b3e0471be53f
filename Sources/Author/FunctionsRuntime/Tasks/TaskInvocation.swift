import DocumentModel
import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The protocol between Cloud Tasks' request and the handler of a task.
///
/// The envelope and the errors have the form of a callable's. A success has the status 204.
struct TaskInvocation {
  let scope: FunctionScope

  /// Returns the JSON dialect of payloads, which must be the same for enqueuing and dispatch.
  static func dialect(_ dates: JSONDates?) -> ValueDialect { .json(dates: dates ?? .rfc3339) }

  /// Responds to a task in every case, even if it is invalid or the handler throws.
  func reply<Payload: Decodable & Sendable>(
    to request: InvocationRequest,
    _ handler: (TaskRequest<Payload>) async throws -> Void
  ) async -> Response {
    let task: TaskRequest<Payload>
    do {
      task = try self.task(of: request)
    } catch {
      let message = (error as? CallableError)?.message ?? "\(error)"
      scope.logger.error("The task is refused", metadata: ["error": "\(message)"])
      return failure(.invalidArgument, message, advice: .never, for: request)
    }
    do {
      try await handler(task)
      return Response(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
    } catch is CancellationError where Task.isCancelled {
      scope.logger.notice("The function was cancelled")
      return failure(.cancelled, "The task was cancelled.", advice: nil, for: request)
    } catch let error as CallableError {
      await scope.handlerThrew(error)
      return failure(error.code, error.message, advice: nil, for: request)
    } catch {
      await scope.handlerThrew(error)
      return failure(.internal, "INTERNAL", advice: (error as? EventError)?.advice, for: request)
    }
  }

  private func failure(
    _ code: StatusCode,
    _ message: String,
    advice: RetryAdvice?,
    for request: InvocationRequest
  ) -> Response {
    var reply = CallableReply.error(code, message, for: request.head)
    reply.head.headerFields.set(advice)
    return scope.acknowledged(reply, advice)
  }

  private func task<Payload: Decodable & Sendable>(
    of request: InvocationRequest
  ) throws -> TaskRequest<Payload> {
    let data = try CallableInvocation.data(of: request)
    let payload: Payload
    do {
      payload = try ValueDecoder(dialect: Self.dialect(scope.options.dates))
        .decode(Payload.self, from: data)
    } catch let error as ValueCodingError {
      throw CallableError(.invalidArgument, "The task is refused: \(error.below("data")).")
    }
    let fields = request.head.headerFields
    func number(_ name: HTTPField.Name) -> Int? { fields[name].flatMap { Int($0) } }
    return TaskRequest(
      data: payload,
      queueName: fields[Header.queueName] ?? request.function,
      taskName: fields[Header.taskName] ?? request.id,
      retryCount: number(Header.retryCount) ?? 0,
      executionCount: number(Header.executionCount) ?? 0,
      scheduledTime: fields[Header.eta].flatMap(Self.time),
      previousResponse: number(Header.previousResponse),
      retryReason: fields[Header.retryReason],
      caller: fields[.authorization].flatMap(Self.caller),
      invocationID: request.id,
      logger: scope.logger
    )
  }

  /// Reads a time: seconds since 1970 from Cloud Tasks, or RFC 3339 from its emulator.
  private static func time(_ text: String) -> Timestamp? {
    if let time = Timestamp(text) { return time }
    guard let seconds = Double(text), seconds.magnitude < 1e12 else { return nil }
    return Timestamp(microseconds: Int64((seconds * 1_000_000).rounded()))
  }

  /// Returns the owner of a bearer token; nil for `owner` and any other text that is not a token.
  private static func caller(_ authorization: String) -> AuthenticatedUser? {
    let words = authorization.split(separator: " ")
    guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
    let parts = words[1].split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var base64 = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    // Any other text leaves the caller unknown. Cloud Run decides who may call the function at all.
    guard let json = Data(base64Encoded: base64),
      case .map(let claims)? = try? JSONReader.read(json, unwrapsIntegers: false),
      case .string(let subject)? = claims["sub"]
    else { return nil }
    return AuthenticatedUser(uid: subject, claims: claims)
  }

  private enum Header {
    static let queueName = fieldName("x-cloudtasks-queuename")
    static let taskName = fieldName("x-cloudtasks-taskname")
    static let retryCount = fieldName("x-cloudtasks-taskretrycount")
    static let executionCount = fieldName("x-cloudtasks-taskexecutioncount")
    static let eta = fieldName("x-cloudtasks-tasketa")
    static let previousResponse = fieldName("x-cloudtasks-taskpreviousresponse")
    static let retryReason = fieldName("x-cloudtasks-taskretryreason")
  }
}
