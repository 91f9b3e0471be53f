import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore

/// Declares an HTTP function: it gets requests as they are and answers as it likes.
///
/// It serves all methods and all paths below its name. Bodies are streamed both ways: a request's up
/// to 32 MiB, a response's without bound within the function's timeout. When the client goes away the
/// handler's task is cancelled. With `options.cors` set, preflights are answered before the handler.
///
/// ```swift
/// onRequest("upload") { request in
///   var size = 0
///   for try await bytes in request.body { size += bytes.count }
///   return .text("\(size) bytes\n")
/// }
/// ```
public func onRequest(
  _ name: String,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse
) -> some CloudFunction<HTTPFunctionRequest, HTTPFunctionResponse> {
  HTTPFunction(name: name, options: options, handler: handler)
}

struct HTTPFunction: CloudFunction {
  let name: String
  let options: FunctionOptions
  let handler: @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse

  var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .http, options: options) { request, scope in
      await HTTPExchange(scope: scope).reply(to: request, handler)
    }
  }

  func callAsFunction(_ input: HTTPFunctionRequest) async throws -> HTTPFunctionResponse {
    try await handler(input)
  }
}

/// Everything between a request to an HTTP function and its handler, and back.
struct HTTPExchange: Sendable {
  let scope: FunctionScope

  private static let methods = "GET,HEAD,PUT,PATCH,POST,DELETE"
  /// How the Functions Framework tells its callers that the function, not they, went wrong.
  private static let statusHeader = fieldName("x-google-status")

  /// Answers a request; a handler that throws is an answer too.
  func reply(
    to request: InvocationRequest,
    _ handler: @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse
  ) async -> InvocationReply {
    if let cors, request.head.method == .options,
      request.head.headerFields[.accessControlRequestMethod] != nil
    {
      return cors.preflight(for: request.head, methods: Self.methods)
    }
    var reply: InvocationReply
    do {
      reply = self.reply(try await handler(HTTPFunctionRequest(request, scope.logger)))
    } catch let error as HTTPFunctionError {
      reply = Self.text(error.message, error.status)
    } catch let error as BodyTooLarge {
      reply = Self.text(error.statusMessage, .contentTooLarge)
    } catch is CancellationError where Task.isCancelled {
      scope.logger.notice("The function was cancelled")
      reply = Self.text("The request was cancelled.", .numbered(499))
    } catch {
      scope.logger.error("The function failed", metadata: ["error": "\(error)"])
      reply = Self.text("Internal Server Error", .internalServerError)
      reply.head.headerFields[Self.statusHeader] = "error"
    }
    cors?.apply(to: &reply.head, for: request.head)
    return reply
  }

  /// Off unless the function says so, or the emulator is told to allow all that do not refuse.
  private var cors: CORSOrigins? {
    let origins = scope.options.cors ?? (scope.debugFeatures.enablesCORS ? .any : nil)
    return origins == CORSOrigins.none ? nil : origins
  }

  private func reply(_ response: HTTPFunctionResponse) -> InvocationReply {
    var head = HTTPResponse(status: response.status, headerFields: response.headers)
    switch response.body {
    case .bytes(let bytes):
      let mayHaveBody = response.status.code >= 200 && ![204, 304].contains(response.status.code)
      head.headerFields[.contentLength] = mayHaveBody ? String(bytes.count) : nil
      return InvocationReply(
        head: head,
        body: .whole(mayHaveBody ? ByteBuffer(bytes: bytes) : ByteBuffer())
      )
    case .stream(let produce):
      let logger = scope.logger
      return InvocationReply(
        head: head,
        body: .produced { write in
          do {
            try await produce(HTTPResponseWriter { try await write(ByteBuffer(bytes: $0)) })
          } catch  where Task.isCancelled {
            throw CancellationError()
          } catch {
            logger.error("The function failed while it answered", metadata: ["error": "\(error)"])
            throw error
          }
        }
      )
    }
  }

  private static func text(_ text: String, _ status: HTTPResponse.Status) -> InvocationReply {
    var head = HTTPResponse(status: status)
    let body = ByteBuffer(string: text + "\n")
    head.headerFields[.contentType] = "text/plain; charset=utf-8"
    head.headerFields[.contentLength] = String(body.readableBytes)
    return InvocationReply(head: head, body: .whole(body))
  }
}

extension HTTPFunctionRequest {
  /// A request as the worker received it.
  fileprivate init(_ request: InvocationRequest, _ logger: Logger) {
    self.init(
      request.head.method,
      request.head.path ?? "/",
      headers: request.head.headerFields,
      body: HTTPRequestBody(request.body),
      invocationID: request.id,
      logger: logger
    )
  }
}
