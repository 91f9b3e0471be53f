import ArgumentParser
import EmulatorSuite
import Foundation
import Identity
import JSONText
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

  func validate() throws {
    try ProjectID.check(project)
    if let hub { try HubAddress.check(hub) }
  }

  /// Returns a client of the running suite; throws with exit code 3 if none is running.
  ///
  /// Throws with exit code 2 if the address that the user named is that of another service, or of
  /// the suite of another project than `--project`.
  func connect() async throws -> ControlClient {
    var tried: [String] = []
    for candidate in try candidates() {
      let client = ControlClient(address: candidate.address, token: candidate.token)
      var finding = ""
      // The port of a stopped suite may now belong to another suite.
      do {
        switch try await client.suite() {
        case .running(let suite) where candidate.pid.map { $0 == suite.pid } ?? true:
          guard let problem = otherProject(suite, candidate) else { return client }
          guard !candidate.isNamed else { throw CommandError(problem, .usage) }
          finding = ": is of project \(suite.project)"
        case .running: break
        case .otherService(let note):
          guard !candidate.isNamed else {
            throw CommandError(HubAddress.wrongPort(note, candidate.source), .usage)
          }
        case .notHub: finding = ": something else answers there"
        case nil: break
        }
      } catch  where candidate.pid != nil {
        // The suite at this address is another one and refuses the token of the stopped suite.
      }
      tried.append("\(candidate.address) (\(candidate.source))\(finding)")
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
  ///
  /// Throws `CommandError` if the project is another user's.
  private func folders() throws -> [String] {
    if let dataFolder { return [dataFolder] }
    let working = FileManager.default.currentDirectoryPath
    let project = try ProjectFiles.projectFolder(from: working)
    return [Self.defaultFolder]
      + (project == working ? [] : [project + "/" + Self.defaultFolder])
  }

  /// Returns the refusal of a suite that is of another project than `--project`; nil if it is not.
  private func otherProject(_ suite: SuiteDescription, _ candidate: Candidate) -> String? {
    guard let project, project != suite.project else { return nil }
    let remedy =
      candidate.source == "FIREBASE_EMULATOR_HUB"
      ? "unset FIREBASE_EMULATOR_HUB, or leave --project out" : "leave --project out"
    return
      "The suite at \(candidate.address) (\(candidate.source)) is of project \(suite.project), "
      + "not of \(project) (--project). Name the other suite with --hub, \(remedy)."
  }

  private struct Candidate {
    var source: String
    var address: String
    /// The ID of the process that must respond, if a file names it.
    var pid: Int32?
    var token: String?
    /// True if the user named the address.
    var isNamed = false
  }

  /// Returns the addresses where a suite may be running, most specific first.
  private func candidates() throws -> [Candidate] {
    if let hub { return [Candidate(source: "--hub", address: hub, isNamed: true)] }
    let environment = ProcessInfo.processInfo.environment
    if let hub = environment["FIREBASE_EMULATOR_HUB"] {
      return [Candidate(source: "FIREBASE_EMULATOR_HUB", address: hub, isNamed: true)]
    }
    var found: [Candidate] = []
    for folder in try folders() {
      let stored = ServerFile.read(folder: folder).map { [$0] } ?? []
      for suite in stored + ServerFile.readEphemeral(replacing: folder) {
        guard let hub = suite.services["hub"] else { continue }
        found.append(
          Candidate(
            source: suite.serverFile ?? folder,
            address: "\(hub.host):\(hub.port)",
            pid: suite.pid,
            token: suite.token
          )
        )
      }
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
    let address = HubAddress.bare(address)
    self.address = address
    self.token =
      token
      ?? HubToken.find(hub: address, environment: ProcessInfo.processInfo.environment)
  }

  /// The kinds of servers that may answer at an address.
  enum Answer {
    case running(SuiteDescription)
    /// Another service of a suite; its note names the hub's address.
    case otherService(note: String)
    case notHub
  }

  /// Returns the server at the address, or nil; throws if a suite refuses this client.
  func suite() async throws -> Answer? {
    // Any failure to send means that no server responds.
    guard let response = try? await send("GET", "/hearth/v1/suite", timeout: .seconds(2)) else {
      return nil
    }
    let failure = Self.failure(response.status, response.body)
    if [401, 403].contains(response.status) { throw failure }
    if failure.message.hasPrefix("This is the port of") {
      return .otherService(note: failure.message)
    }
    // Another server answers in another form.
    guard response.isSuccess,
      let suite = try? SuiteDescription(decodingJSON: response.body)
    else { return .notHub }
    return .running(suite)
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
    try Reply(decodingJSON: try await data("GET", path))
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

  /// Returns the failure that an error response of the suite describes.
  static func failure(_ status: Int, _ body: [UInt8]) -> CommandError {
    struct ErrorBody: Decodable {
      struct Detail: Decodable {
        var message: String
        var status: String?
      }
      var error: Detail
    }
    // An error in another form is shown as it is.
    if let error = try? ErrorBody(decodingJSON: body).error {
      let isUsage = error.status == "INVALID_ARGUMENT"
      return CommandError(error.message, isUsage ? .usage : .failed, status: error.status)
    }
    return CommandError(
      "The suite returned HTTP \(status): \(String(decoding: body, as: UTF8.self))"
    )
  }
}
