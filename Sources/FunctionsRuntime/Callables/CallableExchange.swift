import DocumentModel
import HTTPSupport
import HTTPTypes
import Identity
import Invocation
import NIOCore
import RuntimeSupport

/// The callable protocol: everything between an HTTP request and a handler, and back.
///
/// Knows no socket: the gateway, Cloud Run and tests all come through here.
struct CallableExchange {
  let scope: FunctionScope

  /// A call whose envelope and token are in order.
  struct Call {
    var data: Value
    var auth: CallableAuth
    var instanceIDToken: String?
  }

  /// The coders that speak the function's JSON.
  struct Coding {
    var decoder: ValueDecoder
    var encoder: ValueEncoder
  }

  private static let instanceIDHeader = fieldName("firebase-instance-id-token")

  private var coding: Coding {
    let dialect = ValueDialect.json(dates: scope.options.dates ?? .secondsSince2001)
    return Coding(decoder: ValueDecoder(dialect: dialect), encoder: ValueEncoder(dialect: dialect))
  }

  /// Answers a request, whatever becomes of it; `body` turns a sound call into its result.
  ///
  /// The order is Firebase's: method, content type, envelope, token, and only then the payload.
  func reply(
    to request: InvocationRequest,
    _ body: (Call, Coding) async throws -> Value
  ) async -> InvocationReply {
    if request.head.method == .options { return CallableReply.preflight(for: request.head) }
    do {
      let data = try Self.data(of: request)
      let call = Call(
        data: data,
        auth: try auth(of: request),
        instanceIDToken: request.head.headerFields[Self.instanceIDHeader]
      )
      var writer = JSONWriter()
      writer.append(syntax: #"{"result":"#)
      try writer.append(try await body(call, coding))
      writer.append(syntax: "}")
      return CallableReply.json(writer.bytes, status: .ok, for: request.head)
    } catch let error as CallableError {
      return reply(with: error, for: request.head)
    } catch is CancellationError where Task.isCancelled {
      return reply(with: CallableError(.cancelled, "The call was cancelled."), for: request.head)
    } catch {
      scope.logger.error("The function failed", metadata: ["error": "\(error)"])
      return reply(with: CallableError(.internal, "INTERNAL"), for: request.head)
    }
  }

  private func reply(with error: CallableError, for head: HTTPRequest) -> InvocationReply {
    var details: Value?
    if let given = error.details {
      do {
        details = try coding.encoder.encode(given)
      } catch {
        scope.logger.error("The error's details do not encode", metadata: ["error": "\(error)"])
      }
    }
    return CallableReply.error(error.code, error.message, details: details, for: head)
  }

  private static func data(of request: InvocationRequest) throws -> Value {
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
    guard request.body.readableBytes > 0 else {
      throw refused(#"The body is empty; send {"data": …}."#)
    }
    let body: Value
    do {
      body = try JSONReader.read(request.body.readableBytesView)
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

  private func auth(of request: InvocationRequest) throws -> CallableAuth {
    let context: AuthContext
    do {
      context = try scope.credentials.authenticate(
        authorization: request.head.headerFields[.authorization]
      )
    } catch {
      throw CallableError(error.statusCode, error.statusMessage)
    }
    switch context {
    case .unauthenticated: return .unauthenticated
    case .admin: return .admin
    case .user(let user):
      // The claims are JSON, as the reader of credentials has checked; what fails is their depth.
      guard case .map(let claims)? = try? JSONReader.read(user.claimsJSON.utf8) else {
        throw CallableError(.unauthenticated, "The token's claims cannot be read.")
      }
      return .user(AuthenticatedUser(uid: user.uid, claims: claims))
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
