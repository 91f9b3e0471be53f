import ArgumentParser
import EmulatorSuite
import Foundation
import Identity
import OutboundHTTP

/// The options through which commands other than `start` find the running suite.
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

  /// Returns a client of the running suite; throws with exit code 3 if none is running.
  func connect() async throws -> ControlClient {
    var tried: [String] = []
    for candidate in candidates() {
      let client = ControlClient(address: candidate.address, token: candidate.token)
      // The port of a stopped suite may now belong to another suite.
      do {
        if let suite = try await client.suite(), candidate.pid.map({ $0 == suite.pid }) ?? true {
          return client
        }
      } catch  where candidate.pid != nil {
        // The suite at this address is another one and refuses the token of the stopped suite.
      }
      tried.append("\(candidate.address) (\(candidate.source))")
    }
    let looked =
      tried.isEmpty
      ? " There is no \(dataFolder ?? Self.defaultFolder)/server.json"
        + (dataFolder == nil
          ? " in this folder or its project's, and no file of the project's suite." : ".")
      : " Tried \(tried.joined(separator: ", "))."
    throw CommandError(
      "No running suite found.\(looked) Start one with `hearth start`, or name it with --hub.",
      .noServer
    )
  }

  /// The data folders where a suite may have written its addresses: of this folder and the project.
  private var folders: [String] {
    if let dataFolder { return [dataFolder] }
    let working = FileManager.default.currentDirectoryPath
    let project = ProjectFiles.projectFolder(from: working)
    return [Self.defaultFolder]
      + (project == working ? [] : [project + "/" + Self.defaultFolder])
  }

  private struct Candidate {
    var source: String
    var address: String
    /// The ID of the process that must respond, if a file names it.
    var pid: Int32?
    var token: String?
  }

  /// Returns the addresses where a suite may be running, most specific first.
  private func candidates() -> [Candidate] {
    if let hub { return [Candidate(source: "--hub", address: hub)] }
    let environment = ProcessInfo.processInfo.environment
    if let hub = environment["FIREBASE_EMULATOR_HUB"] {
      return [Candidate(source: "FIREBASE_EMULATOR_HUB", address: hub)]
    }
    var found: [Candidate] = []
    for folder in folders {
      guard let suite = ServerFile.read(folder: folder), let hub = suite.services["hub"] else {
        continue
      }
      found.append(
        Candidate(
          source: "\(folder)/server.json",
          address: "\(hub.host):\(hub.port)",
          pid: suite.pid,
          token: suite.token
        )
      )
    }
    // A command for the suite of a certain folder must not reach another suite.
    guard dataFolder == nil else { return found }
    // A `.firebaserc` that cannot be read is treated like a missing one.
    let named = project ?? (try? ProjectFiles.ofWorkingFolder())?.defaultProject
    if let origin = ServerFile.locatorOrigin(project: named ?? ProjectID.standard) {
      found.append(Candidate(source: "locator file", address: origin))
    }
    return found
  }
}

extension String {
  /// The text encoded as one path segment or query value.
  var percentEncoded: String {
    // Encoding fails only for lone surrogates, which a Swift string cannot contain.
    addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(["-", ".", "_", "~"])) ?? self
  }
}

/// A client of the suite's control API.
struct ControlClient {
  /// The address in the form `host:port`.
  let address: String
  private let token: String?
  private let http = OutboundClient()

  /// Creates a client of the hub at `address`, with or without `http://`.
  ///
  /// If `token` is nil, the token is that of this user's suite at the address, or `HEARTH_TOKEN`.
  init(address: String, token: String? = nil) {
    let address = address.hasPrefix("http://") ? String(address.dropFirst(7)) : address
    self.address = address
    self.token =
      token
      ?? HubToken.find(hub: address, environment: ProcessInfo.processInfo.environment)
  }

  /// Returns the suite at the address, or nil; throws if the suite refuses this client.
  func suite() async throws -> SuiteDescription? {
    // Any other failure also means that no suite responds.
    guard let response = try? await send("GET", "/hearth/v1/suite", timeout: .seconds(2)) else {
      return nil
    }
    if [401, 403].contains(response.status) { throw Self.failure(response.status, response.body) }
    guard response.isSuccess else { return nil }
    return try? JSONDecoder().decode(SuiteDescription.self, from: Data(response.body))
  }

  /// Sends a request and returns the response body; throws `CommandError` for an error response.
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

  /// Sends a GET request and decodes the response.
  func get<Reply: Decodable>(_ path: String, as type: Reply.Type) async throws -> Reply {
    try JSONDecoder().decode(Reply.self, from: Data(try await data("GET", path)))
  }

  /// Sends a request and passes on the lines of the response as they arrive.
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

  private static func failure(_ status: Int, _ body: [UInt8]) -> CommandError {
    struct ErrorBody: Decodable {
      struct Detail: Decodable { var message: String }
      var error: Detail
    }
    if let parsed = try? JSONDecoder().decode(ErrorBody.self, from: Data(body)) {
      return CommandError(parsed.error.message)
    }
    return CommandError(
      "The suite returned HTTP \(status): \(String(decoding: body, as: UTF8.self))"
    )
  }
}
