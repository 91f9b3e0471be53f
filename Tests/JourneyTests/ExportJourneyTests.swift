import EmulatorSuite
import Foundation
import TestSupport
import Testing

@Suite("Journeys of exports", .serialized)
struct ExportJourneyTests {
  @Test("An export made while writes go on holds all that came before one of them")
  func oneMoment() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project, ["--no-functions"])
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.writeMany("many", count: 1000)
    let folder = project.folder.path("export")
    let hub = suite.address("hub")
    let root = project.folder.path
    async let export = HearthCommand.run("export", folder, "--hub", hub, in: root)
    // The writes are numbered in the order of their acknowledgements.
    var written = 0
    let deadline = ContinuousClock.now.advanced(by: .seconds(60))
    repeat {
      for _ in 0..<20 {
        try await client.write("numbered/\(1_000_000 + written)", n: written)
        written += 1
      }
    } while !FileManager.default.fileExists(atPath: folder) && ContinuousClock.now < deadline
    let command = try await export

    #expect(command.status == 0, "\(command.errors)")
    let numbers = try Self.numbers(in: folder, of: "numbered")
    #expect(numbers == Array(0..<numbers.count))
    #expect(numbers.count <= written)
    #expect(try Self.numbers(in: folder, of: "many").count == 1000)
  }

  @Test("A kill during an export leaves the old one, and the next export leaves nothing else")
  func killed() async throws {
    let project = try JourneyProject()
    let folder = project.folder.path("export")
    let first = try await SuiteProcess(project, ["--no-functions"])
    let client = JourneyClient(first)
    try await client.write("numbered/a", n: 1)
    _ = try await HearthCommand.run(
      "export",
      folder,
      "--hub",
      first.address("hub"),
      in: project.folder.path
    )
    try await client.writeMany("many", count: 2000)
    let hub = first.address("hub")
    let root = project.folder.path
    async let cut = HearthCommand.run("export", folder, "--force", "--hub", hub, in: root)
    let work = project.folder.path(".export.hearth-export.new/firestore_export")
    await eventually("the export writes") { FileManager.default.fileExists(atPath: work) }
    await first.killHard()

    #expect(try await cut.status == 1)
    #expect(try Self.numbers(in: folder, of: "numbered") == [1])
    #expect(try Self.numbers(in: folder, of: "many") == [])
    let second = try await SuiteProcess(project, ["--no-functions"])
    defer { second.kill() }
    let whole = try await HearthCommand.run(
      "export",
      folder,
      "--force",
      "--hub",
      second.address("hub"),
      in: project.folder.path
    )
    #expect(whole.status == 0, "\(whole.errors)")
    #expect(try Self.numbers(in: folder, of: "many").count == 2000)
    let names = try FileManager.default.contentsOfDirectory(atPath: project.folder.path)
    #expect(!names.contains { $0.contains("hearth-export") })
  }

  @Test("Functions fire for an import only with --fire-triggers", arguments: [false, true])
  func triggers(fires: Bool) async throws {
    let seed = try JourneyProject()
    let folder = seed.folder.path("export")
    let first = try await SuiteProcess(seed, ["--no-functions", "--export-on-exit", folder])
    for number in 0..<3 { try await JourneyClient(first).write("things/t\(number)", n: number) }
    #expect(await first.stop() == 0)

    let project = try JourneyProject()
    let second = try await SuiteProcess(project)
    defer { second.kill() }
    let client = JourneyClient(second)
    let command = try await HearthCommand.run(
      ["import", folder, "--hub", second.address("hub")] + (fires ? ["--fire-triggers"] : []),
      in: project.folder.path
    )
    #expect(command.status == 0, "\(command.errors)")
    try await client.settle()
    #expect(try await client.read("things/t2") == 2)
    #expect(try project.records().count == (fires ? 3 : 0))
  }

  @Test("A failed export at the end keeps the old one and is the exit's reason")
  func failedAtEnd() async throws {
    let project = try JourneyProject()
    let folder = project.folder.path("export")
    let first = try await SuiteProcess(project, ["--no-functions", "--export-on-exit=\(folder)"])
    try await JourneyClient(first).write("numbered/a", n: 1)
    #expect(await first.stop() == 0)

    let second = try await SuiteProcess(project, ["--no-functions", "--export-on-exit=\(folder)"])
    let note = folder + "/notes.txt"
    try "mine".write(toFile: note, atomically: true, encoding: .utf8)
    try await JourneyClient(second).write("numbered/a", n: 2)
    #expect(await second.stop() == 1)
    #expect(project.logTail().contains("The export to \(folder) failed"))
    #expect(try Self.numbers(in: folder, of: "numbered") == [1])
    #expect(FileManager.default.fileExists(atPath: note))
  }

  /// Returns the sorted `n` values of a collection's documents in an export.
  private static func numbers(in folder: String, of collection: String) throws -> [Int] {
    struct Line: Decodable {
      struct Value: Decodable { var integerValue: String }
      var name: String
      var fields: [String: Value]
    }
    let lines = try String(
      contentsOfFile: folder + "/firestore_export/documents-00000.jsonl",
      encoding: .utf8
    ).split(separator: "\n")
    return try lines.compactMap { line in
      let document = try JSONDecoder().decode(Line.self, from: Data(line.utf8))
      guard document.name.contains("/documents/\(collection)/") else { return nil }
      return document.fields["n"].flatMap { Int($0.integerValue) }
    }.sorted()
  }
}
