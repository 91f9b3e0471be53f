import DocumentModel
import DocumentStore
import Foundation
import Identity
import StatusCodes
import TestSupport
import Testing

@testable import DataExport

@Suite("Exports in the form of the official emulator")
struct OfficialExportTests {
  private let folder: TemporaryFolder
  private let path: String
  private var output: String {
    path + "/firestore_export/all_namespaces/all_kinds/output-0"
  }

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("export")
  }

  /// Writes an export of documents, each of about `bytes` bytes.
  private func export(_ documents: [FirestoreDocument], fileBytesMax: Int = 1 << 30) async throws {
    let fixture = Fixture(fileBytesMax: fileBytesMax)
    try await fixture.write(documents)
    _ = try await fixture.exporter.exportAll(
      of: "p",
      to: path,
      replaces: false,
      form: .firebase
    )
  }

  private func refusal() async throws -> String {
    let fixture = Fixture()
    let refusal = await failure { try await fixture.importer.import(path, .init(replaces: true)) }
    #expect(fixture.storage.commitsSubmitted == 0)
    return refusal?.statusMessage ?? "was imported"
  }

  @Test("Every value and id comes back as it was")
  func everyValue() async throws {
    try await export(samples)
    let fixture = Fixture()
    let imported = try await fixture.importer.import(path, .init())

    let found = try await fixture.documents()
    #expect(imported.documents == samples.count)
    #expect(
      Dictionary(found.map { ($0.name, $0.fields) }, uniquingKeysWith: { $1 })
        == Dictionary(samples.map { ($0.name, $0.fields) }, uniquingKeysWith: { $1 })
    )
  }

  @Test("Records larger than a block, at every distance from its end, come back whole")
  func blocks() async throws {
    let documents = (0..<40).map { index in
      document("c/d\(index)", ["s": .string(String(repeating: "x", count: index * 1_999))])
    }
    try await export(documents)
    let fixture = Fixture()
    _ = try await fixture.importer.import(path, .init())

    #expect(
      try await fixture.documents().map(\.fields)
        == documents.sorted { $0.name.description < $1.name.description }.map(\.fields)
    )
  }

  @Test("Documents in several files are one export")
  func severalFiles() async throws {
    let documents = (0..<30).map { document("c/d\($0)", ["s": .string("0123456789")]) }
    try await export(documents, fileBytesMax: 500)
    let fixture = Fixture()

    #expect(FileManager.default.fileExists(atPath: output.dropLast() + "3"))
    #expect(try await fixture.importer.import(path, .init()).documents == 30)
  }

  @Test("Names that are equal as text but not as bytes stay apart")
  func canonicalNames() async throws {
    let fields: MapValue = ["e\u{301}": .array([.integer(1)]), "\u{e9}": .array([.integer(2)])]
    try await export([document("c/a", fields)])
    let fixture = Fixture()
    _ = try await fixture.importer.import(path, .init())

    #expect(try await fixture.documents().map(\.fields) == [fields])
  }

  @Test("A file of documents that is a link or is named twice is refused")
  func oddFiles() async throws {
    try await export([document("c/a")])
    let metadata =
      (output as NSString).deletingLastPathComponent
      + "/all_namespaces_all_kinds.export_metadata"
    let once = try #require(FileManager.default.contents(atPath: metadata))
    var again = WireWriter()
    again.bytes(2, Array("output-0".utf8))
    var twice = WireWriter()
    twice.bytes(2, again.bytes)
    try (once + Data(twice.bytes)).write(to: URL(filePath: metadata))
    #expect(try await refusal().contains("twice"))

    try once.write(to: URL(filePath: metadata))
    try FileManager.default.removeItem(atPath: output)
    try FileManager.default.createSymbolicLink(atPath: output, withDestinationPath: "/dev/zero")
    #expect(try await refusal().contains("output-0"))
  }

  @Test("Documents move to the suite's project, with their references")
  func otherProject() async throws {
    let target = DocumentName(database: database, path: ResourcePath(["c", "b"]))
    try await export([document("c/a", ["r": .reference(target)])])
    let fixture = Fixture(project: "q")
    _ = try await fixture.importer.import(path, .init())

    let moved = DatabaseName(project: "q")
    let found = try await fixture.documents(moved)
    #expect(
      found.map(\.fields) == [["r": .reference(DocumentName(database: moved, path: target.path))]]
    )
  }

  @Test("A project with another database is not exported in this form")
  func otherDatabase() async throws {
    let fixture = Fixture()
    let other = DatabaseName(project: "p", database: "other")
    let write = Write(
      .update(
        DocumentName(database: other, path: ResourcePath(["c", "a"])),
        fields: [:],
        mask: nil,
        transforms: []
      )
    )
    _ = try await fixture.store.commit([write], database: other, transaction: nil, auth: .admin)
    let refusal = await failure {
      try await fixture.exporter.exportAll(of: "p", to: path, replaces: false, form: .firebase)
    }

    #expect(refusal?.statusCode == .failedPrecondition)
    #expect(refusal?.statusMessage.contains("documents in other") == true)
  }

  @Test("Replacing with an export of no documents empties the database")
  func replacedByNothing() async throws {
    try await export([])
    let own = folder.path("own")
    _ = try await Fixture().exporter.exportAll(of: "p", to: own, replaces: false)

    for path in [path, own] {
      let fixture = Fixture()
      try await fixture.write([document("c/a")])
      _ = try await fixture.importer.import(path, .init())
      #expect(try await fixture.documents().count == 1)
      _ = try await fixture.importer.import(path, .init(replaces: true))
      #expect(try await fixture.documents().isEmpty, "\(path)")
    }
  }

  @Test("Parts of emulators that are not here are named, alone or beside documents")
  func otherParts() async throws {
    try await export([document("c/a")])
    let file = URL(filePath: path + "/firebase-export-metadata.json")
    var parts = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
    )
    parts["storage"] = ["version": "13.0.0", "path": "storage_export"]
    parts["dataconnect"] = ["version": "2.0.0", "path": "dataconnect_export"]
    try JSONSerialization.data(withJSONObject: parts).write(to: file)
    let imported = try await Fixture().importer.import(path, .init())
    #expect(imported.documents == 1)
    #expect(imported.skippedParts == ["dataconnect", "storage"])

    parts["firestore"] = nil
    for name in ["auth", "vectors"] { parts[name] = nil }
    try JSONSerialization.data(withJSONObject: parts).write(to: file)
    #expect(try await refusal().contains("only dataconnect, storage"))
  }

  @Test("The form of an export is that of its documents")
  func form() async throws {
    try await export([document("c/a")])
    #expect(DataExporter.form(ofExportAt: path) == .firebase)
    let own = folder.path("own")
    _ = try await Fixture().exporter.exportAll(of: "p", to: own, replaces: false)
    #expect(DataExporter.form(ofExportAt: own) == .hearth)
    #expect(DataExporter.form(ofExportAt: folder.path("none")) == .hearth)
  }

  // MARK: - Damage

  /// Overall metadata with records of parts, each with a path and a promised number of documents.
  private func writeMetadata(_ records: [[(path: String, documents: UInt64)]]) throws {
    let file = folder.path("hostile.overall_export_metadata")
    let log = try LevelDBLogWriter(path: file)
    try log.append(OfficialExport.version)
    for record in records {
      var writer = WireWriter()
      for part in record {
        var inner = WireWriter()
        inner.bytes(2, Array(part.path.utf8))
        inner.number(3, part.documents)
        writer.bytes(1, inner.bytes)
      }
      try log.append(writer.bytes)
    }
    try log.finish()
  }

  @Test("Metadata that promise more documents than any database has are refused")
  func promises() async throws {
    try await export([document("c/a")])
    let kind = "export/firestore_export/all_namespaces/all_kinds"
    let part = (
      path: "\(kind)/all_namespaces_all_kinds.export_metadata", documents: UInt64(1) << 40
    )
    try writeMetadata([[part, part], [part]])
    let hostile = folder.path("hostile.overall_export_metadata")
    let refusal = await failure { try await Fixture().importer.import(hostile, .init()) }

    #expect(refusal?.statusMessage.contains("promises more documents") == true)
  }

  @Test("A kind or a file that is named again is refused, however its path is written")
  func namedAgain() async throws {
    try await export([document("c/a")])
    let kind = "export/firestore_export/all_namespaces/all_kinds"
    let name = "all_namespaces_all_kinds.export_metadata"
    try writeMetadata([[("\(kind)/\(name)", 1), ("\(kind)/.//\(name)", 1)]])
    let hostile = folder.path("hostile.overall_export_metadata")
    let refusal = await failure { try await Fixture().importer.import(hostile, .init()) }

    #expect(refusal?.statusMessage.contains("twice") == true)
  }

  @Test("A cancelled import ends, also within a long run of zeros", .timeLimit(.minutes(5)))
  func cancelledWithinZeros() async throws {
    try await export([document("c/a")])
    let file = try FileHandle(forUpdating: URL(filePath: output))
    // The file has no blocks on the disk, but reading all of it would take minutes.
    try file.truncate(atOffset: 1 << 40)
    let fixture = Fixture()
    let importing = Task { await failure { try await fixture.importer.import(path, .init()) } }
    importing.cancel()

    #expect(await importing.value?.statusCode == .cancelled)
    #expect(fixture.storage.commitsSubmitted == 0)
  }

  @Test("A changed byte anywhere in a file of documents is refused before anything is written")
  func changedByte() async throws {
    try await export([document("c/a", ["s": .string("hello")]), document("c/b")])
    let whole = try #require(FileManager.default.contents(atPath: output))

    for index in whole.indices {
      var damaged = whole
      damaged[index] ^= 0x40
      try damaged.write(to: URL(filePath: output))
      let text = try await refusal()
      #expect(text.contains("output-0, record at byte"), "byte \(index): \(text)")
    }
  }

  @Test("A file that ends early is refused, also between two records")
  func truncated() async throws {
    try await export([document("c/a", ["s": .string("hello")]), document("c/b")])
    let whole = try #require(FileManager.default.contents(atPath: output))
    let ends = try recordEnds()

    for count in 0..<whole.count {
      try whole.prefix(count).write(to: URL(filePath: output))
      let reason = ends.contains(count) ? "promises 2 documents" : "ends in the middle"
      #expect(try await refusal().contains(reason), "\(count) bytes")
    }
  }

  @Test("Zeros in the place of records are refused, with or without data behind them")
  func zeros() async throws {
    try await export([document("c/a", ["s": .string("hello")]), document("c/b")])
    let whole = try #require(FileManager.default.contents(atPath: output))

    try Data(count: whole.count).write(to: URL(filePath: output))
    #expect(try await refusal().contains("promises 2 documents, but its files have 0"))
    try (Data(count: 10) + whole.dropFirst(10)).write(to: URL(filePath: output))
    #expect(try await refusal().contains("zeros stand where a record begins"))
  }

  @Test("The position of a damaged record is that of its beginning")
  func position() async throws {
    try await export([document("c/a", ["s": .string(String(repeating: "x", count: 100_000))])])
    var whole = try #require(FileManager.default.contents(atPath: output))
    whole[90_000] ^= 1
    try whole.write(to: URL(filePath: output))

    #expect(try await refusal().contains("output-0, record at byte 0: its checksum differs"))
  }

  @Test("The metadata file stands for its folder, also under its bare name")
  func metadataFile() async throws {
    try await export([document("c/a")])
    let documents = path + "/firestore_export"
    let file = documents + "/firestore_export.overall_export_metadata"
    #expect(try await Fixture().importer.import(file, .init()).documents == 1)

    try FileManager.default.moveItem(atPath: file, toPath: documents + "/overall_export_metadata")
    #expect(try await Fixture().importer.import(documents, .init()).documents == 1)
  }

  private func recordEnds() throws -> Set<Int> {
    let reader = try LevelDBLogReader(path: output)
    var ends: Set<Int> = [0]
    while let record = try reader.next() {
      ends.insert(reader.recordOffset + LevelDBLog.headerBytes + record.count)
    }
    return ends
  }

  @Test(
    "A file that is missing is named",
    arguments: [
      "firestore_export/firestore_export.overall_export_metadata",
      "firestore_export/all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata",
      "firestore_export/all_namespaces/all_kinds/output-0",
    ]
  )
  func missing(file: String) async throws {
    try await export([document("c/a")])
    try FileManager.default.removeItem(atPath: "\(path)/\(file)")

    #expect(try await refusal().contains("\(path)/\(file)"))
  }

  @Test(
    "A record that is no document is refused with the reason",
    arguments: [
      ([], "an entity without the key of a document"),
      ([0xFF], "malformed protobuf"),
      ([0x0B, 0x0B, 0x0B], "malformed protobuf"),
    ] as [([UInt8], String)]
  )
  func noDocument(record: [UInt8], reason: String) async throws {
    try await export([document("c/a")])
    try FileManager.default.removeItem(atPath: output)
    let writer = try LevelDBLogWriter(path: output)
    try writer.append(record)
    try writer.finish()

    #expect(try await refusal().contains("record at byte 0: \(reason)."))
  }

  @Test("A property of an unknown meaning, a wrong type or a double name is refused by its name")
  func properties() throws {
    func refusal(_ properties: [[UInt8]]) -> String {
      let whole = EntityRecord.bytes(document("c/a"))
      var writer = WireWriter()
      for property in properties { writer.bytes(15, property) }
      do {
        _ = try EntityReader().document(whole + writer.bytes, time: Timestamp(microseconds: 0))
        return "was read"
      } catch {
        return error.statusMessage
      }
    }
    func property(_ name: String, meaning: UInt64? = nil, text: String = "x") -> [UInt8] {
      var value = WireWriter()
      value.bytes(3, Array(text.utf8))
      var writer = WireWriter()
      if let meaning { writer.number(1, meaning) }
      writer.bytes(3, Array(name.utf8))
      writer.bytes(5, value.bytes)
      return writer.bytes
    }

    #expect(refusal([property("a")]) == "was read")
    #expect(refusal([property("a", meaning: 99)]) == "a property of the unknown meaning 99")
    #expect(refusal([property("a", meaning: 7)]) == "the value of a has an unknown form")
    #expect(refusal([property("a"), property("a")]) == "two properties a that are no array")
    #expect(refusal([property("a", meaning: 0)]) == "was read")
    #expect(refusal([[0x08, 0x00]]) == "a property without a name")
  }

  @Test("Maps that are nested endlessly are refused, not followed")
  func nesting() throws {
    var entity: [UInt8] = []
    for _ in 0..<200 {
      var value = WireWriter()
      value.bytes(3, entity)
      var property = WireWriter()
      property.number(1, 19)
      property.bytes(3, Array("m".utf8))
      property.bytes(5, value.bytes)
      var outer = WireWriter()
      outer.bytes(15, property.bytes)
      entity = outer.bytes
    }
    let record = EntityRecord.bytes(document("c/a")) + entity

    let error = #expect(throws: StatusError.self) {
      try EntityReader().document(record, time: Timestamp(microseconds: 0))
    }
    #expect(error?.statusMessage == "maps nested more than 20 times")
  }

  @Test("Bytes at random are refused or read, but end no process")
  func randomBytes() throws {
    var random = SeededGenerator(seed: 7)
    let valid = EntityRecord.bytes(samples[0])
    for _ in 0..<3_000 {
      var bytes = valid
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
      }
      bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
      do {
        _ = try EntityReader().document(bytes, time: Timestamp(microseconds: 0))
      } catch {
        #expect(error.statusCode == .invalidArgument)
      }
    }
  }

  @Test("CRC-32C is that of its known answer")
  func checksum() {
    var checksum = Checksum(.castagnoli)
    Array("123456789".utf8).withUnsafeBytes { checksum.update($0) }

    #expect(checksum.value == 0xE306_9283)
  }
}
