import HTTPMessages
import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore
import StatusCodes

/// The protocol between a request to an HTTP function and its handler.
struct HTTPFunctionInvocation: Sendable {
  let scope: FunctionScope

  private static let methods = "GET,HEAD,PUT,PATCH,POST,DELETE"
  /// The header with which the Functions Framework reports a failed function to its caller.
  private static let statusHeader = fieldName("x-google-status")

  /// Responds to a request, even if the handler throws.
  func reply(
    to request: InvocationRequest,
    _ handler: @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse
  ) async -> Response {
    if let cors, request.head.method == .options,
      request.head.headerFields[.accessControlRequestMethod] != nil
    {
      return cors.preflight(for: request.head, methods: Self.methods)
    }
    var reply: Response
    do {
      reply = self.reply(try await handler(HTTPFunctionRequest(request, scope.logger)))
    } catch let error as HTTPFunctionError {
      reply = Self.text(error.message, error.status)
    } catch let error as BodyTooLargeError {
      reply = Self.text(error.statusMessage, .contentTooLarge)
    } catch is CancellationError where Task.isCancelled {
      scope.logger.notice("The function was cancelled")
      reply = Self.text("The request was cancelled.", .numbered(499))
    } catch {
      await scope.handlerThrew(error)
      reply = Self.text("Internal Server Error", .internalServerError)
      reply.head.headerFields[Self.statusHeader] = "error"
    }
    cors?.apply(to: &reply.head, for: request.head)
    return reply
  }

  /// The allowed origins; nil for a function that sends no CORS headers.
  ///
  /// An HTTP function sends CORS headers if its options allow origins. On an emulator with the
  /// debug feature `enablesCORS` it also sends them if its options leave the origins open.
  private var cors: CORSOrigins? {
    let origins = scope.options.cors ?? (scope.debugFeatures.enablesCORS ? .any : nil)
    return origins == CORSOrigins.none ? nil : origins
  }

  private func reply(_ response: HTTPFunctionResponse) -> Response {
    var head = HTTPResponse(status: response.status, headerFields: response.headers)
    switch response.body {
    case .bytes(let bytes):
      let mayHaveBody = response.status.code >= 200 && ![204, 304].contains(response.status.code)
      head.headerFields[.contentLength] = mayHaveBody ? String(bytes.count) : nil
      return Response(
        head: head,
        body: .whole(mayHaveBody ? ByteBuffer(bytes: bytes) : ByteBuffer())
      )
    case .stream(let produce):
      let logger = scope.logger
      return Response(
        head: head,
        body: .produced { write in
          do {
            try await produce(HTTPResponseWriter { try await write(ByteBuffer(bytes: $0)) })
          } catch  where Task.isCancelled {
            throw CancellationError()
          } catch {
            logger.error("The function failed while it responded", metadata: ["error": "\(error)"])
            throw error
          }
        }
      )
    }
  }

  private static func text(_ text: String, _ status: HTTPResponse.Status) -> Response {
    var head = HTTPResponse(status: status)
    let body = ByteBuffer(string: text + "\n")
    head.headerFields[.contentType] = "text/plain; charset=utf-8"
    head.headerFields[.contentLength] = String(body.readableBytes)
    return Response(head: head, body: .whole(body))
  }
}

extension HTTPFunctionRequest {
  /// Creates the request that a handler receives from the request that the worker received.
  fileprivate init(_ request: InvocationRequest, _ logger: Logger) {
    self.init(
      request.head.method,
      request.head.path ?? "/",
      headers: request.head.headerFields,
      body: HTTPRequestBody(request.body),
      invocationID: request.id,
      logger: logger
    )
    host = request.head.authority
  }
}
