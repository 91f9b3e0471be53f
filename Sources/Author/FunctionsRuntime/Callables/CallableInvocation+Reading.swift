import DocumentModel
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import JSONText
import NIOCore
import StatusCodes

/// Reading a call: the envelope with the data, the caller's token, and the app's token.
extension CallableInvocation {
  private static let appCheckHeader = fieldName("x-firebase-appcheck")

  /// Returns the `data` in the body of a request, which has no other member.
  ///
  /// Throws `INVALID_ARGUMENT` for another method, media type or form.
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

  func auth(of request: InvocationRequest) async throws -> CallableAuth {
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
  func app(of request: InvocationRequest) async throws -> CallableApp? {
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
