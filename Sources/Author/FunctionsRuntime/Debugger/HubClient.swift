import Invocation
import OutboundHTTP
import RuntimeSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A client of a running suite's hub, for a worker that was started by hand.
struct HubClient: Sendable {
  /// The address, `host:port`.
  let address: String
  private let environment: [String: String]
  private let http = OutboundClient()

  /// The hub that the variables name; nil in workers that the server has started.
  init?(environment: [String: String]) {
    guard let address = environment["HEARTH_HUB"], !address.isEmpty,
      environment["HEARTH_SOCKET"] == nil,
      environment["FUNCTIONS_MANIFEST_OUTPUT_PATH"] == nil
    else { return nil }
    self.address = address
    self.environment = environment
  }

  /// The token is looked up for each request, because a suite that starts again has a new one.
  private var headers: OutboundHeaders {
    var headers: OutboundHeaders = ["content-type": "application/json"]
    if let token = HubToken.find(hub: address, environment: environment) {
      headers["authorization"] = "Bearer \(token)"
    }
    return headers
  }

  /// The variables that the suite gives to the workers of a function, or of any function.
  func environment(function: String?) async throws -> [String: String] {
    var url = "http://\(address)/hearth/v1/workers/environment"
    if let function { url += "?function=\(function)" }
    let response = try await http.send(OutboundRequest(url: url, headers: headers))
    guard response.isSuccess else { throw Refusal(response.status, response.text) }
    return try JSONDecoder().decode([String: String].self, from: Data(response.body))
  }

  /// Registers, and returns when the suite lets go; `onLine` gets the hub's lines meanwhile.
  func register(
    _ registration: WorkerRegistration,
    onLine: (WorkerLine) async -> Void
  ) async throws {
    let request = OutboundRequest(
      method: "POST",
      url: "http://\(address)/hearth/v1/workers",
      headers: headers,
      body: Array(try JSONEncoder().encode(registration)),
      timeout: nil
    )
    let response = try await http.stream(request)
    guard (200..<300).contains(response.status) else {
      let text = String(decoding: try await response.body.collect(upTo: 1 << 16), as: UTF8.self)
      throw Refusal(response.status, text)
    }
    for try await line in response.body.lines() {
      await onLine(try JSONDecoder().decode(WorkerLine.self, from: Data(line.utf8)))
    }
  }

  /// Gives the functions back; returns when the invocations running here have ended.
  func release(_ id: String) async throws {
    let url = "http://\(address)/hearth/v1/workers/\(id)"
    _ = try await http.send(
      OutboundRequest(method: "DELETE", url: url, headers: headers, timeout: .seconds(10))
    )
  }

  /// The hub's own words for a refusal.
  struct Refusal: Error, CustomStringConvertible {
    var description: String
    /// Whether asking again can help.
    var isFinal: Bool

    init(_ status: Int, _ text: String) {
      description = "HTTP \(status) \(text)"
      isFinal = (400..<500).contains(status)
    }
  }
}
