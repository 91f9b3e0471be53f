import Manifests

/// The environment variables of a worker process.
///
/// They come from three sources; a later one takes precedence:
/// 1. the variables of the server that workers may see (`inherited`),
/// 2. the function's own variables: its `.env` files, its secrets and the addresses of the suite's
///    services, which `DeploymentController` puts together,
/// 3. the variables that describe the function to the runtime and to Firebase's libraries.
enum WorkerEnvironment {
  /// The names of the server's variables that a worker may see.
  static let inherited: Set<String> = ["PATH", "HOME", "LANG"]

  /// Returns the variables of the server's environment that a worker may see.
  static func inherited(from server: [String: String]) -> [String: String] {
    server.filter { inherited.contains($0.key) }
  }

  /// Returns all variables of a worker for a function.
  static func variables(
    for function: DeployedFunction,
    inherited: [String: String],
    socketPath: String,
    memoryBytesMax: Int
  ) -> [String: String] {
    var values = inherited
    values["SWIFT_BACKTRACE"] = backtrace
    values.merge(function.environment) { $1 }
    values.merge([
      "FUNCTION_TARGET": function.name,
      "FUNCTION_SIGNATURE_TYPE": function.endpoint.eventTrigger == nil ? "http" : "cloudevent",
      "FUNCTIONS_EMULATOR": "true",
      "FIREBASE_DEBUG_MODE": "true",
      "FIREBASE_DEBUG_FEATURES": #"{"skipTokenVerification":true,"enableCors":true}"#,
      "K_SERVICE": function.name,
      "K_REVISION": function.deploymentID,
      StraySweep.mark: socketPath,
      "FUNCTION_MEMORY_MB": String(memoryBytesMax >> 20),
      "TZ": "UTC",
    ]) { $1 }
    return values
  }

  /// The settings for a short backtrace: functions and lines of the crashed thread.
  ///
  /// In a debug build, each frame takes about a tenth of a second. Ten frames are those of a report
  /// (`CrashReport.framesMax`) and two of Swift's runtime.
  private static let backtrace =
    "enable=yes,symbolicate=fast,threads=crashed,images=none,registers=none,interactive=no,"
    + "color=no,limit=10,top=0"
}
