import Foundation

/// The Hearth server under test.
struct Hearth: Sendable {
  /// The folder that contains `hearth` and `SampleFunctions`.
  var binaries: String
  /// The folder for the servers' data, on the same disk as the binaries.
  var folder: String

  /// A running server.
  struct Running: Sendable {
    /// The server's process ID.
    var processID: Int32
    var hub: Address
    var firestore: Address
    var functions: Address
    var auth: Address
    var vectors: Address
    var project: String
  }

  /// The line that `start --json` prints.
  private struct Line: Decodable {
    var project: String
    var pid: Int32
    var services: [String: Address]
  }

  /// Makes a folder a project without settings; otherwise it belongs to the checkout around it.
  static func makeProject(of folder: String) throws {
    try "{}".write(toFile: folder + "/firebase.json", atomically: true, encoding: .utf8)
  }

  /// Starts a suite on free ports, runs `body`, and stops the suite.
  ///
  /// It has functions only if `arguments` ask for them.
  func run<Result: Sendable>(
    _ arguments: [String],
    in workingFolder: String? = nil,
    startTimeMax: Duration = .seconds(30),
    body: @escaping @Sendable (Running) async throws -> Result
  ) async throws -> Result {
    let command = ServedProcess.Command(
      executable: binaries + "/hearth",
      arguments: [
        "start", "--json", "--hub-port", "0", "--functions-port", "0", "--firestore-port", "0",
        "--auth-port", "0", "--tasks-port", "0", "--vectors-port", "0", "--ui-port", "0",
      ] + arguments,
      folder: workingFolder ?? folder,
      startTimeMax: startTimeMax
    )
    return try await ServedProcess.run(command) { text in
      // The log is JSON too, but without these members.
      guard let line = try? JSONDecoder().decode(Line.self, from: Data(text.utf8)) else {
        return Running?.none
      }
      guard let hub = line.services["hub"], let firestore = line.services["firestore"],
        let functions = line.services["functions"], let auth = line.services["auth"],
        let vectors = line.services["vectors"]
      else { throw BenchmarkError("The server printed no address: \(text)") }
      return Running(
        processID: line.pid,
        hub: hub,
        firestore: firestore,
        functions: functions,
        auth: auth,
        vectors: vectors,
        project: line.project
      )
    } body: { _, running in
      try await body(running)
    }
  }
}
