import Foundation

/// Firebase's Python functions under `functions-framework`, where installed.
///
/// They contain the same callable as `echo` in `Tests/SampleFunctions`. The framework serves with
/// gunicorn and default settings, as on Cloud Run.
struct PythonFunctions: Sendable {
  private let executable: String

  /// Returns nil if the virtual environment does not contain them; `make bench` installs them.
  init?(environment folder: String) {
    executable = folder + "/bin/functions-framework"
    guard FileManager.default.isExecutableFile(atPath: executable),
      FileManager.default.isExecutableFile(atPath: folder + "/bin/gunicorn")
    else { return nil }
  }

  private static let source = """
    from firebase_functions import https_fn

    print("loaded", flush=True)

    @https_fn.on_call()
    def echo(request: https_fn.CallableRequest):
        return request.data

    """

  /// Starts the server, runs `body` when it is ready, or at once unless `waits`, and stops it.
  func run<Result: Sendable>(
    in folder: String,
    waits: Bool = true,
    body: @escaping @Sendable (Address) async throws -> Result
  ) async throws -> Result {
    let project = folder + "/python"
    try FileManager.default.createDirectory(atPath: project, withIntermediateDirectories: true)
    try Self.source.write(toFile: project + "/main.py", atomically: true, encoding: .utf8)
    let address = Address(port: try Address.freePort())
    var command = ServedProcess.Command(
      executable: executable,
      arguments: ["--target=echo", "--host=\(address.host)", "--port=\(address.port)"],
      folder: project
    )
    command.timeMax = ServedProcess.neighbourTimeMax
    // Without this environment the framework uses a development server.
    command.environment = ["FUNCTIONS_EMULATOR": "true", "GCLOUD_PROJECT": "demo-psst"]
    return try await ServedProcess.run(
      command,
      ready: { $0 == "loaded" ? address : nil },
      else: waits ? nil : address
    ) { _, address in
      try await body(address)
    }
  }
}
