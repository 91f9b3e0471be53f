import Foundation

/// Google's Firestore emulator, where installed; it keeps documents in memory only.
struct OfficialEmulator: Sendable {
  private let executable: String

  /// Returns nil if `gcloud` or Java is not on the search path.
  init?(path: String) {
    func find(_ name: String) -> String? {
      path.split(separator: ":").map { "\($0)/\(name)" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    guard let executable = find("gcloud"), find("java") != nil else { return nil }
    self.executable = executable
  }

  /// Starts the emulator with its own launcher, runs `body`, and stops it.
  ///
  /// `metadata` is the path of the overall metadata of an export that it imports first.
  func run<Result: Sendable>(
    in folder: String,
    rules: String? = nil,
    importing metadata: String? = nil,
    // It starts a Python program, which then starts a Java program.
    startTimeMax: Duration = .seconds(60),
    body: @escaping @Sendable (ServedProcess, Address) async throws -> Result
  ) async throws -> Result {
    let address = Address(port: try Address.freePort())
    let command = ServedProcess.Command(
      executable: executable,
      arguments: ["emulators", "firestore", "start", "--host-port=\(address)", "--quiet"]
        + (rules.map { ["--rules=\($0)"] } ?? [])
        + (metadata.map { ["--import-data=\($0)"] } ?? []),
      folder: folder,
      startTimeMax: startTimeMax,
      timeMax: ServedProcess.neighbourTimeMax
    )
    return try await ServedProcess.run(command) { line in
      line.contains("is now running") ? address : nil
    } body: { process, address in
      try await body(process, address)
    }
  }
}
