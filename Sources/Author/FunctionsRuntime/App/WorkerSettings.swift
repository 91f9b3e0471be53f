import HTTPSupport
import Identity
import JSONText
import Logging

/// The settings that a worker process reads once from its flags and its environment.
struct WorkerSettings: Sendable, Equatable {
  /// The path at which to write the manifest instead of serving.
  ///
  /// The process then ends.
  var manifestPath: String?
  /// The only function to serve.
  ///
  /// With nil all functions are served, each below its name.
  var target: String?
  /// The signature that the platform uses for the target; nil if the platform does not name one.
  var signature: FunctionSignature?
  var address: ServerAddress
  var credentialMode: CredentialReader.Mode
  /// The project of accepted tokens and of traces; nil if no setting names it.
  var project: String?
  var debugFeatures: DebugFeatures
  /// True if the end of standard input means that the server that started this process is gone.
  var endsWithStandardInput: Bool
  /// The memory that the server that started this process allows; nil if no server started it.
  var memoryMb: Int?
  var logLevel: Logger.Level
  /// The time after which a request gets 504.
  ///
  /// Nil if the process that started this one enforces a limit itself.
  var requestTimeMax: Duration?
  /// True if `GET /__/quitquitquit` ends the process, for the deployment tool.
  var hasControlAPI: Bool

  /// Reads the variables of Cloud Run, of Firebase's emulators, and of Hearth.
  ///
  /// The flags `--port`, `--target` and `--signature-type` of the Functions Framework take
  /// precedence over variables. The value of a flag is the next argument or follows `=`. Other
  /// arguments belong to the author's program or to a debugger and are ignored. Throws
  /// `InvalidSettingsError` for an invalid port, log level, signature or time, and for a flag
  /// without a value.
  init(environment: [String: String], arguments: [String] = []) throws(InvalidSettingsError) {
    let flags = try Self.flags(arguments)
    func variable(_ name: String) -> String? {
      (flags[name] ?? environment[name]).flatMap { $0.isEmpty ? nil : $0 }
    }
    manifestPath = variable("FUNCTIONS_MANIFEST_OUTPUT_PATH")
    target = variable("FUNCTION_TARGET")
    signature = try variable("FUNCTION_SIGNATURE_TYPE").map(Self.signature)
    requestTimeMax = try variable("CLOUD_RUN_TIMEOUT_SECONDS").map(Self.seconds)
    hasControlAPI = variable("FUNCTIONS_CONTROL_API") == "true"
    credentialMode = variable("FUNCTIONS_EMULATOR") == "true" ? .emulator : .production
    project =
      variable("GCLOUD_PROJECT") ?? variable("GOOGLE_CLOUD_PROJECT")
      ?? Self.decoded(FirebaseConfiguration.self, variable("FIREBASE_CONFIG"))?.projectId
    let isDebugging = variable("FIREBASE_DEBUG_MODE") == "true"
    let features = Self.decoded(Features.self, variable("FIREBASE_DEBUG_FEATURES"))
    debugFeatures = DebugFeatures(enablesCORS: isDebugging && features?.enableCors ?? false)
    let socket = variable("HEARTH_SOCKET")
    endsWithStandardInput = socket != nil
    memoryMb = socket == nil ? nil : variable("FUNCTION_MEMORY_MB").flatMap(Int.init)
    if let socket {
      address = .unixSocket(path: socket)
    } else {
      let text = variable("PORT") ?? (variable("HEARTH_HUB") == nil ? "8080" : "0")
      guard let port = Int(text), (0...65_535).contains(port) else {
        throw InvalidSettingsError("PORT is \"\(text)\"; set a number from 0 to 65535.")
      }
      // Connections from outside are accepted only in a container. Elsewhere only this machine may
      // connect.
      let isOpen =
        credentialMode == .production
        && (variable("K_SERVICE") != nil || variable("HOST") == "0.0.0.0")
      address = .tcp(host: isOpen ? "0.0.0.0" : "127.0.0.1", port: port)
    }
    let level = variable("LOG_LEVEL") ?? "info"
    guard let logLevel = Logger.Level(rawValue: level.lowercased()) else {
      let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw InvalidSettingsError("LOG_LEVEL is \"\(level)\"; set one of \(known).")
    }
    self.logLevel = logLevel
  }

  /// The environment variable that each flag stands for.
  static let flagVariables = [
    "--port": "PORT", "--target": "FUNCTION_TARGET",
    "--signature-type": "FUNCTION_SIGNATURE_TYPE",
  ]

  /// Returns the values of the flags, keyed by the variables that they override.
  private static func flags(_ arguments: [String]) throws(InvalidSettingsError) -> [String: String]
  {
    var values: [String: String] = [:]
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = parts.first, let variable = flagVariables[String(name)] else { continue }
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
        throw InvalidSettingsError("\(name) needs a value.")
      }
      values[variable] = value
    }
    return values
  }

  // Firebase's own variables, with only the members that are needed here.
  private struct FirebaseConfiguration: Decodable {
    var projectId: String?
  }

  private struct Features: Decodable {
    var enableCors: Bool?
  }

  private static func decoded<T: Decodable>(_ type: T.Type, _ json: String?) -> T? {
    // A setting that is not of this form counts as absent: it may come from another platform.
    json.flatMap { try? type.init(decodingJSON: $0.utf8) }
  }

  private static func signature(_ text: String) throws(InvalidSettingsError) -> FunctionSignature {
    guard let signature = FunctionSignature(rawValue: text) else {
      let known = FunctionSignature.allCases.map(\.rawValue).joined(separator: ", ")
      throw InvalidSettingsError("FUNCTION_SIGNATURE_TYPE is \"\(text)\"; set one of \(known).")
    }
    return signature
  }

  private static func seconds(_ text: String) throws(InvalidSettingsError) -> Duration {
    guard let seconds = Int(text), seconds > 0 else {
      throw InvalidSettingsError(
        "CLOUD_RUN_TIMEOUT_SECONDS is \"\(text)\"; set a whole number above 0."
      )
    }
    return .seconds(seconds)
  }
}

/// The error of a worker that cannot start because its environment is invalid.
struct InvalidSettingsError: Error, CustomStringConvertible, Equatable {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}
