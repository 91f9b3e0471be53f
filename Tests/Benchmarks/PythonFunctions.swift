import Foundation

/// Firebase's own Python functions under `functions-framework`, where they are installed.
///
/// The same callable as `echo` of `Tests/SampleFunctions`. The framework serves with gunicorn and
/// its default settings, as it does on Cloud Run.
struct PythonFunctions: Sendable {
  private let executable: String

  /// Nil when the virtual environment does not hold them; `make bench` fills it.
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

  /// Starts the server, runs `body` once it is ready or, without `waits`, at once, and stops it.
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
    // Without it the framework serves with a development server.
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
