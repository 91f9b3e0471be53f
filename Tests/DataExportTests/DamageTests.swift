import DataExport
import DocumentModel
import Foundation
import StatusCodes
import StorageEngine
import Testing
import TestSupport
import VectorIndex

@Suite("Damaged exports")
struct DamageTests {
  private let folder: TemporaryFolder
  private let path: String
  private let documentsFile: String

  init() async throws {
    folder = try TemporaryFolder()
    path = folder.path("export")
    documentsFile = path + "/firestore_export/documents-00000.jsonl"
    let fixture = Fixture(fileBytesMax: 1 << 20)
    try await fixture.write((0..<20).map { document("c/d\($0)", ["n": .integer(Int64($0))]) })
    try await fixture.vectors.create(.init(name: "ix", dimension: 2, metric: .cosine))
    try await fixture.vectors.upsert(
      [.init(id: "v", values: [1, 2], metadata: ["a": .boolean(true)])],
      index: "ix",
      namespace: ""
    )
    _ = try await fixture.exporter.exportAll(of: "p", to: path, replaces: false)
  }

  /// Returns the error of an import, after checking that the import has written nothing.
  private func refusal(_ fixture: Fixture = Fixture()) async throws -> (any StatusConvertible)? {
    let before = try await fixture.documents()
    let commits = fixture.storage.commitsSubmitted
    let refusal = await failure { try await fixture.importer.import(path, .init(replaces: true)) }
    if refusal != nil {
      #expect(try await fixture.documents() == before)
      #expect(fixture.storage.commitsSubmitted == commits)
    }
    return refusal
  }

  private func edit(_ file: String, _ change: (inout Data) throws -> Void) throws {
    var data = try #require(FileManager.default.contents(atPath: file))
    try change(&data)
    try data.write(to: URL(filePath: file))
  }

  @Test("No flipped bit in a file of lines gets by", arguments: ["firestore", "vectors"])
  func flippedBits(service: String) async throws {
    var generator = SeededGenerator.forTest()
    let name = service == "firestore" ? "documents" : "vectors"
    let file = "\(path)/\(service)_export/\(name)-00000.jsonl"
    let whole = try #require(FileManager.default.contents(atPath: file))
    for _ in 0..<40 {
      var flipped = whole
      let index = Int.random(in: whole.indices, using: &generator)
      flipped[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      try flipped.write(to: URL(filePath: file))
      let refusal = try #require(try await refusal(), "byte \(index)")
      #expect(refusal.statusCode == .invalidArgument)
      #expect(refusal.statusMessage.hasPrefix(file))
    }
    try whole.write(to: URL(filePath: file))
    #expect(try await refusal() == nil)
  }

  @Test("A file cut short is refused, wherever it ends")
  func truncated() async throws {
    let whole = try #require(FileManager.default.contents(atPath: documentsFile))
    for count in [0, 1, whole.count / 2, whole.count - 1] {
      try whole.prefix(count).write(to: URL(filePath: documentsFile))
      #expect(try await refusal()?.statusCode == .invalidArgument)
    }
    try FileManager.default.removeItem(atPath: documentsFile)
    #expect(try await refusal()?.statusCode == .notFound)
  }

  @Test("What is wrong with a line is reported with its file and number")
  func garbage() async throws {
    let whole = try String(contentsOfFile: documentsFile, encoding: .utf8)
    for (line, problem) in [
      ("garbage", "no document"), ("{}", "createTime"),
      (
        #"{"name":"projects/p/databases/(default)/documents/c","createTime":"2026-01-01T00:00:00Z","updateTime":"2026-01-01T00:00:00Z"}"#,
        "name"
      ),
      (
        #"{"name":"projects/x/databases/(default)/documents/c/d","createTime":"2026-01-01T00:00:00Z","updateTime":"2026-01-01T00:00:00Z"}"#,
        "not in projects/p"
      ),
      (
        #"{"name":"projects/p/databases/(default)/documents/c/d","fields":{"__x__":{"nullValue":null}},"createTime":"2026-01-01T00:00:00Z","updateTime":"2026-01-01T00:00:00Z"}"#,
        "reserved"
      ),
    ] {
      var lines = whole.split(separator: "\n").map(String.init)
      lines[2] = line
      try (lines.joined(separator: "\n") + "\n").write(
        toFile: documentsFile,
        atomically: true,
        encoding: .utf8
      )
      let message = try #require(try await refusal()).statusMessage
      #expect(message.hasPrefix(documentsFile + ":3: "))
      #expect(message.contains(problem), "\(message)")
    }
  }

  @Test("Of damaged lines far from each other the first one is named")
  func firstDamage() async throws {
    let lines = try String(contentsOfFile: documentsFile, encoding: .utf8).split(separator: "\n")
    let line = try #require(lines.first)
    var many = [Substring](repeating: line, count: 3_000)
    for damaged in [1_400, 1_600, 2_999] { many[damaged - 1] = "{}" }
    try (many.joined(separator: "\n") + "\n")
      .write(toFile: documentsFile, atomically: true, encoding: .utf8)
    let message = try #require(try await refusal()).statusMessage
    #expect(message.hasPrefix(documentsFile + ":1400: "), "\(message)")
  }

  @Test("Metadata that make no sense are refused")
  func metadata() async throws {
    let file = path + "/firestore_export/firestore_export.overall_export_metadata"
    let whole = try String(contentsOfFile: file, encoding: .utf8)
    for (old, new, code) in [
      (#""version" : 1"#, #""version" : 2"#, StatusCode.unimplemented),
      ("hearth-firestore-export", "another", .unimplemented),
      (#""documents" : 20"#, #""documents" : 21"#, .invalidArgument),
      (#""records" : 20"#, #""records" : 9223372036854775807"#, .invalidArgument),
      (#""records" : 20"#, #""records" : -20"#, .invalidArgument),
      ("documents-00000", "../documents-00000", .invalidArgument),
      ("projects/p/databases/(default)", "p", .invalidArgument),
      ("{", "", .invalidArgument),
    ] {
      #expect(whole.contains(old))
      try whole.replacingOccurrences(of: old, with: new)
        .write(toFile: file, atomically: true, encoding: .utf8)
      #expect(try await refusal()?.statusCode == code, "\(new)")
    }
    try FileManager.default.removeItem(atPath: file)
    #expect(try await refusal()?.statusCode == .notFound)
  }

  @Test("Metadata that are not JSON are reported with the line and the column")
  func brokenMetadata() async throws {
    let file = path + "/firestore_export/firestore_export.overall_export_metadata"
    try "{\n  \"version\": 1,,\n}".write(toFile: file, atomically: true, encoding: .utf8)
    let message = try #require(try await refusal()).statusMessage
    #expect(message.hasPrefix("\(file) is not JSON: line 2, column 16: "), "\(message)")
  }

  @Test("A folder without an export is not found")
  func noExport() async throws {
    let other = try TemporaryFolder()
    for path in [other.path, other.path("none")] {
      let refusal = await failure { try await Fixture().importer.import(path, .init()) }
      #expect(refusal?.statusCode == .notFound)
    }
  }

  @Test("Vectors do not go into an index of another dimension")
  func otherDimension() async throws {
    let fixture = Fixture()
    try await fixture.vectors.create(.init(name: "ix", dimension: 3, metric: .cosine))
    let refusal = await failure { try await fixture.importer.import(path, .init()) }
    #expect(refusal?.statusCode == .failedPrecondition)
    #expect(try await fixture.documents() == [])
    _ = try await fixture.importer.import(path, .init(replaces: true))
    #expect(try await fixture.allVectors().count == 1)
  }

  @Test("A pipe in the place of a file is refused instead of waited for", .timeLimit(.minutes(5)))
  func pipes() async throws {
    for file in [
      "firebase-export-metadata.json",
      "firestore_export/firestore_export.overall_export_metadata", "auth_export/accounts.json",
    ] {
      let whole = path + "/" + file
      let text = try Data(contentsOf: URL(filePath: whole))
      try FileManager.default.removeItem(atPath: whole)
      #expect(mkfifo(whole, 0o600) == 0)
      #expect(try await refusal()?.statusMessage.contains("not a regular file") == true, "\(file)")
      try FileManager.default.removeItem(atPath: whole)
      try text.write(to: URL(filePath: whole))
    }
    let alone = folder.path("x.overall_export_metadata")
    #expect(mkfifo(alone, 0o600) == 0)
    let refused = await failure { try await Fixture().importer.import(alone, .init()) }
    #expect(refused?.statusMessage.contains("not a regular file") == true)
  }

  @Test("A link that leads out of the export is refused, also one to a folder")
  func links() async throws {
    for name in ["auth_export", "firestore_export", "vectors_export"] {
      let away = folder.path("away-\(name)")
      try FileManager.default.moveItem(atPath: "\(path)/\(name)", toPath: away)
      try FileManager.default.createSymbolicLink(
        atPath: "\(path)/\(name)",
        withDestinationPath: away
      )
      #expect(try await refusal()?.statusMessage.contains("by a link") == true, "\(name)")
      try FileManager.default.removeItem(atPath: "\(path)/\(name)")
      try FileManager.default.moveItem(atPath: away, toPath: "\(path)/\(name)")
    }
    #expect(try await refusal() == nil)
  }

  @Test("Metadata larger than any real ones are refused before they are read")
  func hugeMetadata() async throws {
    let file = try FileHandle(
      forUpdating: URL(filePath: path + "/firebase-export-metadata.json")
    )
    try file.truncate(atOffset: 1 << 40)
    #expect(try await refusal()?.statusMessage.contains("MiB") == true)
  }

  @Test("The note of an import cut short outlasts imports of something else")
  func otherImport() async throws {
    let fixture = Fixture()
    fixture.storage.failReads(1, with: StorageError(.failed, "the disk is gone"))
    let options = DataImporter.Options(firesTriggers: true, replaces: true)
    #expect(await failure { try await fixture.importer.import(path, options) } != nil)
    let seed = folder.path("seed.json")
    try #"{"c/d": {}}"#.write(toFile: seed, atomically: true, encoding: .utf8)
    _ = try await fixture.importer.import(seed, .init())

    let notes = try await DataImporter.unfinished(in: fixture.storage)
    #expect(notes.map(\.command) == ["hearth import \(path) --replace --fire-triggers"])
  }

  @Test("A note stays from an import cut short, until one comes to its end")
  func interrupted() async throws {
    let fixture = Fixture()
    // The first commit is the import's marker; the documents come in the second.
    try await fixture.write([document("c/z")])
    let commits = fixture.storage.commitsSubmitted
    fixture.storage.holdCommits()
    async let outcome = failure { try await fixture.importer.import(path, .init()) }
    await fixture.storage.waitForCommits(commits + 1)
    let again = await failure { try await fixture.importer.import(path, .init()) }
    #expect(again?.statusCode == .aborted)
    fixture.storage.releaseCommits()
    #expect(await outcome == nil)

    let second = Fixture()
    second.storage.failReads(1, with: StorageError(.failed, "the disk is gone"))
    #expect(await failure { try await second.importer.import(path, .init()) } != nil)
    let note = try #require(try await DataImporter.unfinished(in: second.storage).first)
    #expect(note.path == path)
    _ = try await second.importer.import(path, .init())
    #expect(try await DataImporter.unfinished(in: second.storage).isEmpty)
    #expect(try await second.documents().count == 20)
  }
}
