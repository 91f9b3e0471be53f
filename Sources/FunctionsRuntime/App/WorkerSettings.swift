import HTTPSupport
import Identity
import Logging

/// What a worker process is told by its environment, read once.
struct WorkerSettings: Sendable, Equatable {
  /// Where to write the manifest instead of serving; the process then ends.
  var manifestPath: String?
  /// The only function to serve; nil serves all, each below its name.
  var target: String?
  var address: ServerAddress
  var credentialMode: CredentialReader.Mode
  /// Whether the end of standard input means that the server which started us is gone.
  var endsWithStandardInput: Bool
  var logLevel: Logger.Level

  /// Reads the variables of Cloud Run, of Firebase's emulators and Hearth's own.
  ///
  /// Throws `InvalidSettings` for a port or log level that is none.
  init(environment: [String: String]) throws(InvalidSettings) {
    func variable(_ name: String) -> String? {
      environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
    manifestPath = variable("FUNCTIONS_MANIFEST_OUTPUT_PATH")
    target = variable("FUNCTION_TARGET")
    credentialMode = variable("FUNCTIONS_EMULATOR") == "true" ? .emulator : .production
    let socket = variable("HEARTH_SOCKET")
    endsWithStandardInput = socket != nil
    if let socket {
      address = .unixSocket(path: socket)
    } else {
      let text = variable("PORT") ?? "8080"
      guard let port = Int(text), (0...65_535).contains(port) else {
        throw InvalidSettings("PORT is \"\(text)\"; set a number from 0 to 65535.")
      }
      // Cloud Run reaches a container from outside; anywhere else only this machine may.
      let isCloudRun = credentialMode == .production && variable("K_SERVICE") != nil
      address = .tcp(host: isCloudRun ? "0.0.0.0" : "127.0.0.1", port: port)
    }
    let level = variable("LOG_LEVEL") ?? "info"
    guard let logLevel = Logger.Level(rawValue: level.lowercased()) else {
      let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw InvalidSettings("LOG_LEVEL is \"\(level)\"; set one of \(known).")
    }
    self.logLevel = logLevel
  }
}

/// Why a worker does not start: its environment makes no sense.
struct InvalidSettings: Error, CustomStringConvertible, Equatable {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}
