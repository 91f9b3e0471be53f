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

  private static let appCheckHeader = fieldName("x-firebase-appcheck")

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
      scope.logger.error("The function failed", metadata: ["error": "\(error)"])
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

  static func data(of request: InvocationRequest) throws -> FirestoreValue {
    guard request.head.method == .post else {
      throw refused("A callable takes POST, not \(request.head.method.rawValue).")
    }
    let contentType = request.head.headerFields[.contentType] ?? ""
    guard mediaType(contentType) == "application/json" else {
      throw refused(
        contentType.isEmpty
          ? "A callable needs the header Content-Type: application/json."
          : "A callable takes Content-Type application/json, not \(contentType)."
      )
    }
    guard request.wholeBody.readableBytes > 0 else {
      throw refused(#"The body is empty; send {"data": …}."#)
    }
    let body: FirestoreValue
    do {
      body = try JSONReader.read(request.wholeBody.readableBytesView)
    } catch let error as JSONSyntaxError {
      throw refused("The body is not JSON: \(error.reason) at byte \(error.offset).")
    } catch let error as ValueCodingError {
      throw refused("The request is refused: \(error).")
    }
    guard case .map(let fields) = body else {
      throw refused(#"The body must be an object with exactly the key "data"."#)
    }
    if let extra = fields.keys.filter({ $0 != "data" }).min() {
      throw refused(
        #"The request is refused: '\#(extra)' is not expected beside 'data'; put it inside."#
      )
    }
    guard let data = fields["data"] else {
      throw refused("The request is refused: 'data' is missing.")
    }
    return data
  }

  private func auth(of request: InvocationRequest) async throws -> CallableAuth {
    let context: AuthContext
    do {
      context = try await scope.credentials.verify(
        authorization: request.head.headerFields[.authorization]
      )
    } catch {
      throw CallableError(error.statusCode, error.statusMessage, details: Self.details(of: error))
    }
    switch context {
    case .unauthenticated: return .unauthenticated
    case .admin: return .admin
    case .user(let user):
      // The credential reader has checked that the claims are JSON. Only their nesting depth can
      // fail here.
      guard
        case .map(let claims)? = try? JSONReader.read(user.claimsJSON.utf8, unwrapsIntegers: false)
      else {
        throw CallableError(.unauthenticated, "The token's claims cannot be read.")
      }
      return .user(AuthenticatedUser(uid: user.uid, claims: claims))
    }
  }

  /// Returns `{"reason": "TOKEN_EXPIRED"}` for an expired token, which the app can renew.
  ///
  /// Other refused tokens have no details: nothing that the app does makes them valid.
  private static func details(of error: StatusError) -> [String: String]? {
    for case .errorInfo(let reason, _) in error.statusDetails { return ["reason": reason] }
    return nil
  }

  /// Returns the calling app, identified by its App Check token.
  ///
  /// A missing or invalid token refuses the call only if the function enforces App Check. Otherwise
  /// the result is nil.
  private func app(of request: InvocationRequest) async throws -> CallableApp? {
    let isEnforced = scope.options.enforceAppCheck ?? false
    guard let token = request.head.headerFields[Self.appCheckHeader] else {
      if isEnforced { throw CallableError(.unauthenticated, "The call needs an App Check token.") }
      return nil
    }
    do {
      let identity = try await scope.credentials.verifyApp(token: token)
      let json = try JSONReader.read(identity.claimsJSON.utf8, unwrapsIntegers: false)
      guard case .map(let claims) = json else { return nil }
      let consumes = scope.options.consumeAppCheckToken ?? false
      return CallableApp(
        appID: identity.appID,
        claims: claims,
        alreadyConsumed: consumes ? scope.credentials.consume(appToken: token) : nil
      )
    } catch {
      let reason = (error as? StatusError)?.statusMessage ?? "\(error)"
      scope.logger.warning("The App Check token is not valid", metadata: ["error": "\(reason)"])
      if isEnforced { throw CallableError(.unauthenticated, "The App Check token is not valid.") }
      return nil
    }
  }

  private static func refused(_ message: String) -> CallableError {
    CallableError(.invalidArgument, message)
  }

  private static func mediaType(_ header: String) -> String {
    var type = header.prefix { $0 != ";" }
    while type.last == " " { type.removeLast() }
    return type.lowercased()
  }
}
