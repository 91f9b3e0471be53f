import AuthEmulator
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import OutboundHTTP
import Synchronization

/// A transport that passes requests to the suite's Auth service, in this process.
final class AuthTransport: HTTPTransport {
  /// The host that functions find in `FIREBASE_AUTH_EMULATOR_HOST`; it exists in this suite only.
  static let host = "auth.test"

  private let service = Mutex<AuthService?>(nil)

  /// Sets the service, which is made after the functions that it asks.
  func connect(_ service: AuthService) { self.service.withLock { $0 = service } }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    guard let service = service.withLock({ $0 }) else {
      throw OutboundHTTPError(.invalidRequest, "Auth serves requests once the suite runs.")
    }
    let prefix = "http://\(Self.host)"
    var head = HTTPRequest(
      method: HTTPRequest.Method(request.method) ?? .get,
      scheme: "http",
      authority: Self.host,
      path: request.url.hasPrefix(prefix) ? String(request.url.dropFirst(prefix.count)) : "/"
    )
    for (name, value) in request.headers {
      if let name = HTTPField.Name(name) { head.headerFields[name] = value }
    }
    let response = await service.respond(
      to: Request(head: head, body: .whole(ByteBuffer(bytes: request.body)))
    )
    var headers = OutboundHeaders()
    for field in response.headers { headers.append(field.name.rawName, field.value) }
    let body = try await response.body.collect(upTo: request.responseBytesMax)
    return OutboundResponse(
      status: response.status.code,
      headers: headers,
      body: Array(body.readableBytesView)
    )
  }
}
