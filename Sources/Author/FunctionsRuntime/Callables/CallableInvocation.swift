import DocumentModel
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import Invocation
import JSONText
import NIOCore
import StatusCodes

/// The server side of the callable protocol, which turns an HTTP request into a handler's call.
///
/// It uses no sockets: requests from the gateway, from Cloud Run and from tests all pass through
/// it.
struct CallableInvocation: Sendable {
  let scope: FunctionScope

  struct Call: Sendable {
    var data: FirestoreValue
    var auth: CallableAuth
    var app: CallableApp?
    var instanceIDToken: String?
  }

  /// The decoder and the encoder for the function's JSON.
  struct Coding: Sendable {
    var decoder: ValueDecoder
    var encoder: ValueEncoder
  }

  private static let instanceIDHeader = fieldName("firebase-instance-id-token")

  private var coding: Coding {
    let dialect = ValueDialect.json(dates: scope.options.dates ?? .secondsSince2001)
    return Coding(decoder: ValueDecoder(dialect: dialect), encoder: ValueEncoder(dialect: dialect))
  }

  /// The work that turns a valid call into its result.
  ///
  /// The stream is nil if the caller wants no chunks.
  typealias Body = @Sendable (Call, Coding, ChunkStream?) async throws -> FirestoreValue

  /// Responds to a request in every case; `body` does the function's work.
  ///
  /// The checks have Firebase's order: method, content type, envelope, token, and only then the
  /// payload. A caller that asks for a stream always gets a stream. Its status is 200 even if the
  /// call is refused.
  func reply(to request: InvocationRequest, _ body: @escaping Body) async -> Response {
    if request.head.method == .options { return CallableReply.preflight(for: request.head, cors) }
    guard ServerSentEvents.areWanted(by: request.head) else {
      let outcome = await outcome(of: request, nil, body)
      return CallableReply.json(outcome.json, status: outcome.status, for: request.head, cors)
    }
    return CallableReply.eventStream(for: request.head, cors) { write in
      let stream = ChunkStream(encoder: coding.encoder, write: write)
      let outcome = await outcome(of: request, stream, body)
      try await stream.end(outcome.json)
    }
  }

  private var cors: CORSOrigins { scope.options.cors ?? .any }

  /// The outcome for the caller: the envelope with the result or the error, and the HTTP status.
  private struct Outcome {
    var json: [UInt8]
    var status: HTTPResponse.Status
  }

  private func outcome(
    of request: InvocationRequest,
    _ stream: ChunkStream?,
    _ body: Body
  ) async -> Outcome {
    do {
      let data = try Self.data(of: request)
      let call = Call(
        data: data,
        auth: try await auth(of: request),
        app: try await app(of: request),
        instanceIDToken: request.head.headerFields[Self.instanceIDHeader]
      )
      var writer = JSONWriter()
      writer.append(syntax: #"{"result":"#)
      try writer.append(try await body(call, coding, stream))
      writer.append(syntax: "}")
      return Outcome(json: writer.bytes, status: .ok)
    } catch let error as CallableError {
      return outcome(error)
    } catch is CancellationError where Task.isCancelled || stream?.isBroken ?? false {
      return outcome(CallableError(.cancelled, "The call was cancelled."))
    } catch {
      await scope.handlerThrew(error)
      return outcome(CallableError(.internal, "INTERNAL"))
    }
  }

  private func outcome(_ error: CallableError) -> Outcome {
    var details: [UInt8]?
    if let given = error.details {
      do {
        details = try JSONWriter.write(try coding.encoder.encode(given))
      } catch {
        // Send the error without the details, because the error itself matters more.
        scope.logger.error("The error's details do not encode", metadata: ["error": "\(error)"])
      }
    }
    let code = error.code == .ok ? .internal : error.code
    return Outcome(
      json: GoogleErrorBody.callable(code, error.message, details: details),
      status: .numbered(code.httpStatus)
    )
  }
}
