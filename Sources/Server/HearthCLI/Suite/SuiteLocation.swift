import ArgumentParser
import EmulatorSuite
import Foundation
import OutboundHTTP
import RuntimeSupport

/// The options by which every command but `start` finds the running suite.
struct SuiteLocation: ParsableArguments {
  @Option(help: ArgumentHelp("Address of the hub, such as 127.0.0.1:4400.", valueName: "host:port"))
  var hub: String?

  @Option(
    name: .customLong("data-folder"),
    help: ArgumentHelp(
      "The suite's data folder, where server.json names its addresses. (default: .hearth)",
      valueName: "folder"
    )
  )
  var dataFolder: String?

  @Option(help: "The project; by default that of .firebaserc.")
  var project: String?

  static let defaultFolder = ".hearth"

  /// A client of the running suite; throws with exit code 3 when none runs.
  func connect() async throws -> ControlClient {
    var tried: [String] = []
    for candidate in candidates() {
      let client = ControlClient(address: candidate.address, token: candidate.token)
      // The port of a suite that is gone may now belong to another suite.
      do {
        if let suite = try await client.suite(), candidate.pid.map({ $0 == suite.pid }) ?? true {
          return client
        }
      } catch  where candidate.pid != nil {
        // That suite refuses the token of the one that is gone.
      }
      tried.append("\(candidate.address) (\(candidate.source))")
    }
    let looked =
      tried.isEmpty
      ? " There is no \(dataFolder ?? Self.defaultFolder)/server.json"
        + (dataFolder == nil ? " in this folder, and no file of the project's suite." : ".")
      : " Tried \(tried.joined(separator: ", "))."
    throw CommandFailure(
      "No running suite found.\(looked) Start one with `hearth start`, or name it with --hub.",
      .noServer
    )
  }

  private struct Candidate {
    var source: String
    var address: String
    /// The process that must answer, if a file names it.
    var pid: Int32?
    var token: String?
  }

  /// The places where a suite may be, most specific first.
  private func candidates() -> [Candidate] {
    if let hub { return [Candidate(source: "--hub", address: hub)] }
    let environment = ProcessInfo.processInfo.environment
    if let hub = environment["FIREBASE_EMULATOR_HUB"] {
      return [Candidate(source: "FIREBASE_EMULATOR_HUB", address: hub)]
    }
    var found: [Candidate] = []
    let folder = dataFolder ?? Self.defaultFolder
    if let suite = ServerFile.read(folder: folder), let hub = suite.services["hub"] {
      found.append(
        Candidate(
          source: "\(folder)/server.json",
          address: "\(hub.host):\(hub.port)",
          pid: suite.pid,
          token: suite.token
        )
      )
    }
    // A command for the suite of a folder must not reach another suite.
    guard dataFolder == nil else { return found }
    // A .firebaserc that cannot be read names no project, as a missing one does.
    let named = project ?? (try? ProjectFiles(folder: "."))?.defaultProject
    if let origin = ServerFile.locatorOrigin(project: named ?? ProjectID.standard) {
      found.append(Candidate(source: "locator file", address: origin))
    }
    return found
  }
}

extension String {
  /// The text as one segment of a path or one value of a query.
  var percentEncoded: String {
    // Only lone surrogates have no encoding, and a Swift string holds none.
    addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(["-", ".", "_", "~"])) ?? self
  }
}

/// A client of the suite's control API.
struct ControlClient {
  /// The address, `host:port`.
  let address: String
  private let token: String?
  private let http = OutboundClient()

  /// A client of the hub at `address`, with or without `http://`.
  ///
  /// Without a token it takes that of this user's suite at the address, else `HEARTH_TOKEN`'s.
  init(address: String, token: String? = nil) {
    let address = address.hasPrefix("http://") ? String(address.dropFirst(7)) : address
    self.address = address
    self.token =
      token
      ?? HubToken.find(hub: address, environment: ProcessInfo.processInfo.environment)
  }

  /// The suite that answers at the address, or nil; throws when it refuses this client.
  func suite() async throws -> SuiteDescription? {
    // Any other failure means the same: no suite answers.
    guard let response = try? await send("GET", "/hearth/v1/suite", timeout: .seconds(2)) else {
      return nil
    }
    if [401, 403].contains(response.status) { throw Self.failure(response.status, response.body) }
    guard response.isSuccess else { return nil }
    return try? JSONDecoder().decode(SuiteDescription.self, from: Data(response.body))
  }

  /// Sends a request and returns the reply's body; an error reply becomes a `CommandFailure`.
  func data(
    _ method: String,
    _ path: String,
    body: [UInt8] = [],
    timeout: Duration = .seconds(120)
  ) async throws -> [UInt8] {
    let response = try await send(method, path, body: body, timeout: timeout)
    guard response.isSuccess else { throw Self.failure(response.status, response.body) }
    return response.body
  }

  /// Sends a request and decodes the reply.
  func get<Reply: Decodable>(_ path: String, as type: Reply.Type) async throws -> Reply {
    try JSONDecoder().decode(Reply.self, from: Data(try await data("GET", path)))
  }

  /// Sends a request and passes on the lines of the reply as they come.
  func lines(
    _ method: String,
    _ path: String,
    _ body: (String) throws -> Void
  ) async throws {
    var request = request(method, path)
    request.timeout = nil
    let response = try await http.stream(request)
    guard (200..<300).contains(response.status) else {
      throw Self.failure(response.status, try await response.body.collect(upTo: 1 << 20))
    }
    for try await line in response.body.lines() where !line.isEmpty { try body(line) }
  }

  private func send(
    _ method: String,
    _ path: String,
    body: [UInt8] = [],
    timeout: Duration
  ) async throws -> OutboundResponse {
    var request = request(method, path)
    request.body = body
    request.timeout = timeout
    return try await http.send(request)
  }

  private func request(_ method: String, _ path: String) -> OutboundRequest {
    var headers: OutboundHeaders = ["content-type": "application/json"]
    if let token { headers["authorization"] = "Bearer \(token)" }
    return OutboundRequest(method: method, url: "http://\(address)\(path)", headers: headers)
  }

  private static func failure(_ status: Int, _ body: [UInt8]) -> CommandFailure {
    struct ErrorBody: Decodable {
      struct Detail: Decodable { var message: String }
      var error: Detail
    }
    if let parsed = try? JSONDecoder().decode(ErrorBody.self, from: Data(body)) {
      return CommandFailure(parsed.error.message)
    }
    return CommandFailure(
      "The suite answered HTTP \(status): \(String(decoding: body, as: UTF8.self))"
    )
  }
}
