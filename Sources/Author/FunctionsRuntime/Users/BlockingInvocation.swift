import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import Invocation
import StatusCodes

/// The protocol between Auth's request and the handler of a blocking function.
///
/// The request is `{"data":{"jwt":"…"}}`, and the response has the changes of the user.
struct BlockingInvocation: Sendable {
  let scope: FunctionScope
  let type: BlockingEventType

  /// Responds with the changes, or with the error that refuses the sign-up or sign-in.
  ///
  /// A `CallableError` of the handler reaches the client. Any other error is logged, and the client
  /// receives `INTERNAL`.
  func reply(
    to request: InvocationRequest,
    _ handler: (BlockingEvent) async throws -> UserChanges?
  ) async -> Response {
    do {
      let event = try await event(of: request)
      let changes = try await handler(event)
      let json = try JSONWriter.write((changes ?? UserChanges()).reply)
      return CallableReply.json(json, status: .ok, for: request.head)
    } catch let error as CallableError {
      return refusal(error.code == .ok ? .internal : error.code, error.message, request)
    } catch {
      await scope.handlerThrew(error)
      return refusal(.internal, "INTERNAL", request)
    }
  }

  private func refusal(
    _ code: StatusCode,
    _ message: String,
    _ request: InvocationRequest
  ) -> Response {
    CallableReply.json(
      GoogleErrorBody.callable(code, message),
      status: .numbered(code.httpStatus),
      for: request.head
    )
  }

  private func event(of request: InvocationRequest) async throws -> BlockingEvent {
    guard case .map(let data) = try CallableInvocation.data(of: request),
      case .string(let token)? = data["jwt"]
    else { throw CallableError(.invalidArgument, #"The body must be {"data":{"jwt":"…"}}."#) }
    let json: String
    do {
      json = try await scope.credentials.verifyBlocking(token: token)
    } catch {
      throw CallableError(error.statusCode, error.statusMessage)
    }
    // The error below says what matters to the caller.
    guard case .map(let claims)? = try? JSONReader.read(json.utf8, unwrapsIntegers: false) else {
      throw CallableError(.unauthenticated, "The token's claims cannot be read.")
    }
    guard claims["event_type"] == .string(type.rawValue) else {
      throw CallableError(.invalidArgument, "The function is for \(type.rawValue) only.")
    }
    let user: UserRecord
    do {
      user = try UserRecord(claims["user_record"])
    } catch {
      throw CallableError(.invalidArgument, error.message)
    }
    func text(_ name: String) -> String? {
      if case .string(let text)? = claims[name] { text } else { nil }
    }
    return BlockingEvent(
      user: user,
      method: text("sign_in_method"),
      ipAddress: text("ip_address"),
      userAgent: text("user_agent"),
      locale: text("locale"),
      rawUserInfo: text("raw_user_info"),
      id: text("event_id") ?? request.id,
      invocationID: request.id,
      logger: scope.logger
    )
  }
}
