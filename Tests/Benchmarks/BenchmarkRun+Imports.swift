import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Measurements of imports, over an export in the form that both emulators read.
extension BenchmarkRun {
  private static let importedDocuments = 1_000_000
  private static let importTimeMax = Duration.seconds(1_200)

  /// Measures starts with an export of a million documents, about a gigabyte.
  func measureImports() async throws {
    let export = hearth.folder + "/imports-export"
    let written = hearth.folder + "/imports-written"
    try await hearth.run(["--no-functions", "--data", written]) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await firestore.createAll(Self.importedDocuments, in: "imported", textBytes: 900)
      let began = ContinuousClock.now
      try await self.export(to: export, from: server)
      figures.record(.exportSeconds, (ContinuousClock.now - began) / .seconds(1))
    }
    try FileManager.default.removeItem(atPath: written)
    defer {
      // The folder of all data goes in any case at the end of the run.
      try? FileManager.default.removeItem(atPath: export)
    }
    try await part("imports", of: .hearth) {
      let arguments = ["--no-functions", "--data", written, "--import", export]
      let began = ContinuousClock.now
      try await hearth.run(arguments, startTimeMax: Self.importTimeMax) { server in
        figures.record(.importSeconds, (ContinuousClock.now - began) / .seconds(1))
        recordMemory(.importMegabytes, of: .hearth, ProcessMemory.peak(server.processID))
      }
    }
    guard let official else { return }
    try await part("imports", of: .official) {
      let metadata = export + "/firestore_export/firestore_export.overall_export_metadata"
      let began = ContinuousClock.now
      try await official.run(
        in: hearth.folder,
        importing: metadata,
        startTimeMax: Self.importTimeMax
      ) { process, address in
        let firestore = FirestoreLoad(address: address, project: "demo-psst")
        try await firstCommit(to: firestore)
        figures.record(
          .importSeconds,
          of: .official,
          (ContinuousClock.now - began) / .seconds(1)
        )
        let peak = ProcessMemory.peakOfLargestInGroup(process.processID)
        recordMemory(.importMegabytes, of: .official, peak)
      }
    }
  }

  /// Waits for the first acknowledged commit of a server that listens before it has imported.
  private func firstCommit(to firestore: FirestoreLoad) async throws {
    let end = ContinuousClock.now + Self.importTimeMax
    var attempts = 0
    while true {
      do {
        // A commit that was not acknowledged in time may still have been made.
        return try await firestore.createOne("first/d\(attempts)")
      } catch  where ContinuousClock.now < end {
        attempts += 1
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }

  private func export(to folder: String, from server: Hearth.Running) async throws {
    let outcome = try await Subprocess.run(
      .path(FilePath(hearth.binaries + "/hearth")),
      arguments: ["export", folder, "--format", "firebase", "--hub", "\(server.hub)"],
      workingDirectory: FilePath(hearth.folder),
      input: .none,
      output: .string(limit: 1 << 16),
      error: .string(limit: 1 << 16)
    )
    guard outcome.terminationStatus.isSuccess else {
      throw BenchmarkError("The export failed: \(outcome.standardError)")
    }
  }
}
