import Foundation

/// The vendor's Firestore emulator, where it is installed; it keeps documents in memory only.
struct OfficialEmulator: Sendable {
  private let executable: String

  /// Nil when `gcloud` or Java is not on the search path.
  init?(path: String) {
    func find(_ name: String) -> String? {
      path.split(separator: ":").map { "\($0)/\(name)" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    guard let executable = find("gcloud"), find("java") != nil else { return nil }
    self.executable = executable
  }

  /// Starts it, with its own launcher and perhaps a file of rules, and stops it.
  func run<Result: Sendable>(
    in folder: String,
    rules: String? = nil,
    body: @escaping @Sendable (ServedProcess, Address) async throws -> Result
  ) async throws -> Result {
    let address = Address(port: try Address.freePort())
    let command = ServedProcess.Command(
      executable: executable,
      arguments: ["emulators", "firestore", "start", "--host-port=\(address)", "--quiet"]
        + (rules.map { ["--rules=\($0)"] } ?? []),
      folder: folder,
      // A Java and a Python program start one after the other.
      startTimeMax: .seconds(60),
      timeMax: ServedProcess.neighbourTimeMax
    )
    return try await ServedProcess.run(command) { line in
      line.contains("is now running") ? address : nil
    } body: { process, address in
      try await body(process, address)
    }
  }
}
