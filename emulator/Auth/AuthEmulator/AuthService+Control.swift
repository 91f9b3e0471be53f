import AuthAccounts
import DocumentModel
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import JSONText
import NIOCore
import StatusCodes

/// The endpoints that only emulators have: control for tests, and the page that uses codes.
extension AuthService {
  /// Responds to a request for an endpoint of the emulator; nil for the paths of Google's API.
  func control(_ request: Request) async throws -> Response? {
    guard let path = request.pathSegments else { return nil }
    if path.allSatisfy(\.isEmpty), [.get, .head].contains(request.method) {
      return .json(
        #"{"authEmulator":{"ready":true,"docs":"https://firebase.google.com/docs/emulator-suite"}}"#
      )
    }
    guard path.first == "emulator" else { return nil }
    if path == ["emulator", "action"], request.method == .get { return try await action(request) }
    if path.count == 3, path[1] == "auth" {
      throw AuthError.notEmulated("The page for sign-in in a pop-up or by redirect is")
    }
    guard path.count >= 5, path[1] == "v1", path[2] == "projects" else { return nil }
    guard path[3] == store.project else {
      throw AuthError(
        .notFound,
        "PROJECT_NOT_FOUND : This suite serves \(store.project), not \(path[3].prefix(100)).",
        reason: "notFound"
      )
    }
    if path[4] == "tenants" { throw AuthError.notEmulated("Tenants are") }
    guard path.count == 5 else { return nil }
    switch (request.method, path[4]) {
    case (.delete, "accounts"):
      try await removeAll()
      return .json("{}")
    case (.get, "config"): return try await settings()
    case (.patch, "config"):
      let route = AuthRoute(method: "updateConfig")
      return try await updateSettings(try await AuthCall(request, route: route, isAdmin: true))
    case (.post, "tokens"):
      let route = AuthRoute(method: "tokens")
      let call = try await AuthCall(request, route: route, isAdmin: try Self.isAdmin(request))
      return try await token(call)
    case (.get, "oobCodes"): return Self.json(emailCodes())
    case (.get, "verificationCodes"): return Self.json(phoneCodes())
    default: return nil
    }
  }

  /// Returns an ID token of the user with a `localId`, for an administrator.
  ///
  /// It is the token that the user would get, with further `customAttributes` for the session. The
  /// user stays as it is: this is not a sign-in.
  private func token(_ call: AuthCall) async throws -> Response {
    guard call.isAdmin else { throw Self.unauthenticated }
    let body = try call.body()
    let localID = try require(body.localId, "MISSING_LOCAL_ID")
    let user = try require(try await store.read { try $0.user(localID) }, "USER_NOT_FOUND")
    try require(!user.isDisabled, "USER_DISABLED")
    let now = store.time.seconds
    var session = TokenIssuer.Session(provider: user.signInProvider, authTime: now)
    if let claims = body.customAttributes {
      try AccountChecks.customClaims(claims)
      session.claims = JSONObjectText(parsing: claims) ?? JSONObjectText()
    }
    let issued = try await tokens.issue(user, session, at: now)
    var response = JSONObjectText()
    response.set("idToken", issued.idToken)
    return Self.json(response)
  }

  /// Deletes all users and codes without events; the settings stay.
  package func removeAll() async throws {
    try await store.deleteAll()
    codes.removeAll()
  }

  private func emailCodes() -> JSONObjectText {
    let entries = codes.emailCodes.map { code in
      var entry = JSONObjectText()
      entry.set("email", code.email)
      entry.set("newEmail", code.newEmail)
      entry.set("requestType", code.requestType)
      entry.set("oobCode", code.code)
      entry.set("oobLink", code.link)
      return entry.bytes
    }
    var response = JSONObjectText()
    response.set("oobCodes", json: JSONObjectText.array(entries))
    return response
  }

  private func phoneCodes() -> JSONObjectText {
    let entries = codes.phoneCodes.map { code in
      var entry = JSONObjectText()
      entry.set("phoneNumber", code.phoneNumber)
      entry.set("sessionInfo", code.session)
      entry.set("code", code.code)
      return entry.bytes
    }
    var response = JSONObjectText()
    response.set("verificationCodes", json: JSONObjectText.array(entries))
    return response
  }

  // MARK: - The action page

  /// Uses a code from an e-mail, as the page of production does.
  ///
  /// Then it leads the browser to `continueUrl`, or shows the result as JSON.
  private func action(_ request: Request) async throws -> Response {
    let query = request.query
    guard let mode = query["mode"], !mode.isEmpty else {
      return Self.problem("missing mode query parameter", ["mode": "one of resetPassword, …"])
    }
    guard let code = query["oobCode"], !code.isEmpty else {
      return Self.problem("missing oobCode query parameter", [:])
    }
    let target = query["continueUrl"].flatMap { $0.isEmpty ? nil : $0 }
    switch mode {
    case "signIn":
      guard let target else {
        return Self.problem(
          "Missing 'continueUrl' query parameter",
          ["instructions": "To sign in, append &continueUrl=YOUR_APP_URL to the link."]
        )
      }
      return Self.redirect(to: target, adding: request)
    case "resetPassword":
      guard let stored = codes.emailCode(code), stored.requestType == "PASSWORD_RESET" else {
        return Self.expired("reset your password")
      }
      guard let password = query["newPassword"], !password.isEmpty else {
        return Self.passwordNeeded(stored, request)
      }
      do {
        try await reset(stored, password: password)
      } catch let error as AuthError where error.statusMessage == "INVALID_OOB_CODE" {
        return Self.expired("reset your password")
      }
      return Self.done("The password has been successfully updated.", stored.email, target)
    case "verifyEmail", "recoverEmail", "verifyAndChangeEmail":
      guard let stored = codes.emailCode(code), Self.mode(of: stored) == mode else {
        return Self.expired("verify your email")
      }
      do {
        _ = try await apply(emailCode: code)
      } catch let error as AuthError where error.statusMessage == "INVALID_OOB_CODE" {
        return Self.expired("verify your email")
      }
      let text =
        mode == "recoverEmail"
        ? "The email has been successfully reset." : "The email has been successfully verified."
      return Self.done(text, stored.newEmail ?? stored.email, target)
    default: return Self.problem("Invalid mode", [:])
    }
  }

  private static func done(_ text: String, _ email: String, _ target: String?) -> Response {
    if let target { return redirect(to: target, adding: nil) }
    var result = JSONObjectText()
    result.set("success", text)
    result.set("email", email)
    return page(result, status: .ok)
  }

  private static func expired(_ purpose: String) -> Response {
    problem(
      "Your request to \(purpose) has expired or the link has already been used.",
      ["instructions": "Try again with a new link."]
    )
  }

  private static func problem(_ text: String, _ details: [String: String]) -> Response {
    var result = JSONObjectText()
    result.set("error", text)
    for (name, value) in details.sorted(by: { $0.key < $1.key }) { result.set(name, value) }
    return page(result, status: .badRequest)
  }

  private static func page(_ result: JSONObjectText, status: HTTPResponse.Status) -> Response {
    var body = JSONObjectText()
    body.set("authEmulator", result)
    return .json(ByteBuffer(bytes: body.bytes), status: status)
  }

  /// Asks for the new password: a form for browsers, instructions for programs.
  private static func passwordNeeded(_ code: OneTimeCodes.EmailCode, _ request: Request) -> Response
  {
    guard request.headers[.accept]?.contains("text/html") ?? false else {
      return problem(
        "missing newPassword query parameter",
        [
          "instructions":
            "To reset the password for \(code.email), send an HTTP GET request to the following URL.",
          "urlTemplate": code.link + "&newPassword=NEW_PASSWORD_HERE",
        ]
      )
    }
    let fields = request.query.items.filter { $0.name != "newPassword" }.map { item in
      "<input type=\"hidden\" name=\"\(escaped(item.name))\" value=\"\(escaped(item.value))\">"
    }
    var response = Response.html(
      """
      <!doctype html><html lang="en"><meta charset="utf-8"><title>New password</title>
      <form method="get" action="/emulator/action">
      <h1>New password</h1><p>for \(escaped(code.email))</p>
      \(fields.joined(separator: "\n"))
      <label>Password <input type="password" name="newPassword" minlength="6" required autofocus>
      </label> <button>Save</button></form></html>
      """
    )
    response.headers[contentSecurityPolicy] = "default-src 'none'; form-action 'self'"
    return response
  }

  private static let contentSecurityPolicy = fieldName("content-security-policy")

  private static func escaped(_ text: String) -> String {
    // By scalars: a mark that joins a sign to one character must not hide the sign.
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&", "<", ">", "\"", "'": result += "&#\(scalar.value);"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }

  /// Redirects to a page of the app, with the parameters of the request that the app needs.
  private static func redirect(to target: String, adding request: Request?) -> Response {
    guard target.hasPrefix("http://") || target.hasPrefix("https://"),
      !target.utf8.contains(where: { $0 < 0x21 || $0 > 0x7E })
    else { return problem("Invalid continueUrl", [:]) }
    var location = target
    if let request {
      let names = ["mode", "lang", "oobCode", "apiKey"]
      let added = names.compactMap { name in
        request.query[name].map { "\(name)=\(percentEncoded($0))" }
      }
      let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      location = String(parts[0]) + (parts[0].contains("?") ? "&" : "?")
      location += added.joined(separator: "&")
      if parts.count == 2 { location += "#\(parts[1])" }
    }
    return Response(status: .seeOther, headers: [.location: location])
  }

  private static func percentEncoded(_ text: String) -> String {
    text.utf8.map { byte in
      RandomID.isCharacter(byte) || "-._~".utf8.contains(byte)
        ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
