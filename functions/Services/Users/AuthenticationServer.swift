import Foundation
import OutboundHTTP

/// The location of Firebase Authentication: Google's, or an emulator's.
public struct AuthenticationSettings: Sendable, Hashable {
  /// The scheme and host of the emulator, such as `http://127.0.0.1:9099`; nil for Google.
  public var emulator: String?
  /// The app's API key, which Google requires.
  public var apiKey: String

  /// Creates settings from values.
  public init(emulator: String? = nil, apiKey: String) {
    self.emulator = emulator
    self.apiKey = apiKey
  }

  /// Reads `FIREBASE_AUTH_EMULATOR_HOST` and `FIREBASE_API_KEY`; the emulator accepts any key.
  public init(environment: [String: String]) {
    emulator = environment["FIREBASE_AUTH_EMULATOR_HOST"].flatMap {
      $0.isEmpty ? nil : "http://\($0)"
    }
    apiKey = environment["FIREBASE_API_KEY"] ?? "emulator"
  }
}

/// Firebase Authentication's REST API, as an app without an SDK uses it.
struct AuthenticationServer: Sendable {
  let settings: AuthenticationSettings
  let http: any HTTPTransport

  /// The account of a response that signs in.
  struct Account: Decodable, Sendable {
    var localId: String
    var email: String?
    var displayName: String?
    var idToken: String
    var refreshToken: String
    var expiresIn: String
  }

  /// The response of a method of which only the success matters.
  struct Nothing: Decodable, Sendable {}

  /// Sends a request for a method of `accounts`; throws `AuthenticationError`.
  func send<Reply: Decodable>(_ method: String, _ fields: [String: String]) async throws -> Reply {
    let url = "\(origin(of: "identitytoolkit"))/v1/accounts:\(method)"
    let body = try JSONEncoder().encode(fields)
    return try await send(url, body, contentType: "application/json")
  }

  /// Returns new tokens for a refresh token.
  func refresh(_ refreshToken: String) async throws -> (idToken: String, refreshToken: String) {
    struct Reply: Decodable {
      var id_token: String
      var refresh_token: String
    }
    let token = refreshToken.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let form = "grant_type=refresh_token&refresh_token=\(token)"
    let reply: Reply = try await send(
      "\(origin(of: "securetoken"))/v1/token",
      Data(form.utf8),
      contentType: "application/x-www-form-urlencoded"
    )
    return (reply.id_token, reply.refresh_token)
  }

  private func origin(of service: String) -> String {
    settings.emulator.map { "\($0)/\(service).googleapis.com" }
      ?? "https://\(service).googleapis.com"
  }

  private func send<Reply: Decodable>(
    _ url: String,
    _ body: Data,
    contentType: String
  ) async throws -> Reply {
    var request = OutboundRequest(
      method: "POST",
      url: "\(url)?key=\(settings.apiKey)",
      headers: ["content-type": contentType]
    )
    request.body = Array(body)
    request.timeout = AppServices.timeout
    let response: OutboundResponse
    do {
      response = try await http.send(request)
    } catch let error as OutboundHTTPError {
      if error.kind == .cancelled { throw CancellationError() }
      throw AuthenticationError.networkError
    }
    // A success in another form is reported below.
    if response.isSuccess,
      let reply = try? JSONDecoder().decode(Reply.self, from: Data(response.body))
    {
      return reply
    }
    throw Self.error(response)
  }

  private struct Failure: Decodable {
    struct Detail: Decodable { var message: String }
    var error: Detail
  }

  private static func error(_ response: OutboundResponse) -> AuthenticationError {
    // A page of a proxy is not the server's answer.
    guard (400..<500).contains(response.status),
      let failure = try? JSONDecoder().decode(Failure.self, from: Data(response.body))
    else { return .networkError }
    let message = failure.error.message
    let code = message.prefix { $0 != " " }
    switch code {
    case "EMAIL_EXISTS": return .emailAlreadyInUse
    case "INVALID_EMAIL", "MISSING_EMAIL": return .invalidEmail
    case "WEAK_PASSWORD", "MISSING_PASSWORD": return .weakPassword
    case "EMAIL_NOT_FOUND", "INVALID_PASSWORD", "INVALID_LOGIN_CREDENTIALS":
      return .wrongCredentials
    case "USER_DISABLED": return .userDisabled
    case "TOKEN_EXPIRED", "USER_NOT_FOUND", "INVALID_REFRESH_TOKEN", "INVALID_ID_TOKEN":
      return .notAuthenticated
    default: return .refused(refusal(in: message) ?? message)
    }
  }

  /// Returns the text of a function that has refused, from the JSON within a message.
  private static func refusal(in message: String) -> String? {
    guard let start = message.firstIndex(of: "{") else { return nil }
    let json = Data(message[start...].utf8)
    // A message in another form is logged as it is.
    return (try? JSONDecoder().decode(Failure.self, from: json))?.error.message
  }
}
