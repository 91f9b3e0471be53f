import JSONText
import OutboundHTTP
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A single request for a token, to the metadata server or Google's token endpoint.
struct TokenExchange: Sendable {
  let source: CredentialsSource
  let http: any HTTPTransport
  let timeout: Duration

  /// Fetches a token; throws `TokenError`, or a `StatusError` for invalid credentials.
  func fetch(at time: Date) async throws -> FetchedToken {
    let (request, place) = try request(at: time)
    let response = try await send(request, to: place)
    // The error below names the place; the decoder's could show a token.
    guard let answer = try? Answer(decodingJSON: response.body),
      !answer.access_token.isEmpty
    else {
      throw TokenError(
        error: StatusError(.internal, "No access token: \(place) returned something else."),
        mayPass: false
      )
    }
    return FetchedToken(
      token: answer.access_token,
      end: time.addingTimeInterval(answer.expires_in ?? Self.lifetimeSeconds)
    )
  }

  /// Returns the service account's e-mail address.
  ///
  /// Throws like `fetch(at:)`, and also for a user's credentials.
  func serviceAccountEmail() async throws -> String {
    switch source {
    case .metadataServer(let host):
      let response = try await send(metadata(host, "email"), to: "the metadata server \(host)")
      return response.text.filter { !$0.isWhitespace }
    case .file(let path):
      guard case .serviceAccount(let key) = try CredentialsFile(path: path).content else {
        throw StatusError(
          .failedPrecondition,
          "The credentials file \(path) is a user's; this needs the key of a service account."
        )
      }
      return key.email
    }
  }

  private func send(
    _ request: OutboundRequest,
    to place: String
  ) async throws(TokenError) -> OutboundResponse {
    let response: OutboundResponse
    do {
      response = try await http.send(request)
    } catch {
      let failure = error as? OutboundHTTPError
      let isCancelled = failure.map { $0.kind == .cancelled } ?? (error is CancellationError)
      throw TokenError(
        error: StatusError(
          // With this status callers do not retry, because enough attempts were made here.
          isCancelled ? .cancelled : .failedPrecondition,
          "No access token: \(place) does not answer (\(failure?.message ?? "\(error)")).\(advice)"
        ),
        mayPass: !isCancelled && failure?.kind != .invalidRequest
      )
    }
    guard response.isSuccess else { throw refusal(response, place) }
    return response
  }

  private func metadata(
    _ host: String,
    _ name: String,
    query: [(name: String, value: String)] = []
  ) -> OutboundRequest {
    var request = OutboundRequest(
      url: OutboundURL.make(
        base: "http://\(host)/computeMetadata/v1/instance/service-accounts/default/\(name)",
        query: query
      ),
      headers: ["Metadata-Flavor": "Google"]
    )
    request.timeout = timeout
    return request
  }

  private func request(at time: Date) throws(StatusError) -> (OutboundRequest, String) {
    switch source {
    case .metadataServer(let host):
      let scopes = ServiceAccountKey.scopes.joined(separator: ",")
      let request = metadata(host, "token", query: [("scopes", scopes)])
      return (request, "the metadata server \(host)")
    case .file(let path):
      let file = try CredentialsFile(path: path)
      switch file.content {
      case .serviceAccount(let key):
        let form = [
          ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
          ("assertion", try key.assertion(at: time)),
        ]
        return (post(form, to: key.tokenAddress), "the token endpoint for \(key.email)")
      case .user(let clientID, let clientSecret, let refreshToken):
        let form = [
          ("grant_type", "refresh_token"), ("client_id", clientID),
          ("client_secret", clientSecret), ("refresh_token", refreshToken),
        ]
        return (post(form, to: CredentialsFile.tokenAddress), "the token endpoint")
      }
    }
  }

  private func post(_ form: [(String, String)], to address: String) -> OutboundRequest {
    let body = form.map { "\($0)=\(OutboundURL.encode($1))" }.joined(separator: "&")
    var request = OutboundRequest(
      method: "POST",
      url: address,
      headers: ["Content-Type": "application/x-www-form-urlencoded"],
      body: Array(body.utf8)
    )
    request.timeout = timeout
    return request
  }

  private func refusal(_ response: OutboundResponse, _ place: String) -> TokenError {
    // A refusal in another form has no words to show.
    let reason = try? Refusal(decodingJSON: response.body)
    let words = [reason?.error, reason?.error_description].compactMap { $0?.prefix(200) }
      .joined(separator: ": ")
    let mayPass = response.status >= 500 || response.status == 429 || response.status == 408
    return TokenError(
      error: StatusError(
        mayPass ? .failedPrecondition : .unauthenticated,
        "No access token: \(place) returned \(response.status)\(words.isEmpty ? "" : ", \(words)")."
      ),
      mayPass: mayPass
    )
  }

  private var advice: String {
    guard case .metadataServer = source else { return "" }
    return " Away from Google's machines set GOOGLE_APPLICATION_CREDENTIALS to a key file."
  }

  // These names are defined by OAuth.
  private struct Answer: Decodable {
    var access_token: String
    var expires_in: Double?
  }

  private struct Refusal: Decodable {
    var error: String?
    var error_description: String?
  }

  /// Google's usual lifetime, for a response that does not state one.
  private static let lifetimeSeconds = 3600.0
}
