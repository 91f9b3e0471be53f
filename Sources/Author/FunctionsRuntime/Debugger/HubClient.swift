import JSONText
import HTTPMessages
import Identity
import Manifests
import OutboundHTTP

/// A client for the hub of a running suite, used by a worker that was started by hand.
struct HubClient: Sendable {
  /// The hub's address in the form `host:port`.
  let address: String
  private let environment: [String: String]
  private let http = OutboundClient()

  /// Creates a client for the hub that the variables name.
  ///
  /// Nil in workers that the server has started, and in a process that only writes its manifest.
  init?(environment: [String: String]) {
    guard let address = environment["HEARTH_HUB"], !address.isEmpty,
      environment["HEARTH_SOCKET"] == nil,
      environment["FUNCTIONS_MANIFEST_OUTPUT_PATH"] == nil
    else { return nil }
    self.address = address
    self.environment = environment
  }

  /// The headers of a request.
  ///
  /// The token is looked up for each request, because a restarted suite has a new token.
  private var headers: OutboundHeaders {
    var headers: OutboundHeaders = ["content-type": "application/json"]
    if let token = HubToken.find(hub: address, environment: environment) {
      headers["authorization"] = "Bearer \(token)"
    }
    return headers
  }

  /// Returns the variables that the suite gives to the workers of a function.
  ///
  /// Without a name the variables include the secrets of all functions, because one process runs
  /// them all.
  func environment(function: String?) async throws -> [String: String] {
    var url = "http://\(address)/hearth/v1/workers/environment"
    if let function { url += "?function=\(function)" }
    let response = try await http.send(OutboundRequest(url: url, headers: headers))
    guard response.isSuccess else { throw RefusalError(response.status, response.text) }
    return try [String: String](decodingJSON: response.body)
  }

  /// Registers the worker and returns when the suite ends the registration.
  ///
  /// Until then `onLine` receives each line that the hub sends.
  func register(
    _ registration: WorkerRegistration,
    onLine: (WorkerLine) async -> Void
  ) async throws {
    let request = OutboundRequest(
      method: "POST",
      url: "http://\(address)/hearth/v1/workers",
      headers: headers,
      body: try registration.jsonBytes(),
      timeout: nil
    )
    let response = try await http.stream(request)
    guard (200..<300).contains(response.status) else {
      let text = String(decoding: try await response.body.collect(upTo: 1 << 16), as: UTF8.self)
      throw RefusalError(response.status, text)
    }
    for try await line in response.body.lines() {
      await onLine(try WorkerLine(decodingJSON: line.utf8))
    }
  }

  /// Releases the functions of a registration.
  ///
  /// Returns when the invocations that run in this process have ended, or throws after 10 seconds.
  func release(_ id: String) async throws {
    let url = "http://\(address)/hearth/v1/workers/\(id)"
    _ = try await http.send(
      OutboundRequest(method: "DELETE", url: url, headers: headers, timeout: .seconds(10))
    )
  }

  /// The error for a request that the hub refused, with the status and text of the response.
  struct RefusalError: Error, CustomStringConvertible {
    var description: String
    /// True if a repeated request cannot succeed.
    var isFinal: Bool

    init(_ status: Int, _ text: String) {
      description = "HTTP \(status) \(text)"
      isFinal = (400..<500).contains(status)
    }
  }
}
