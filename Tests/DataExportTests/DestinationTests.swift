import DocumentModel
import Foundation
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import DataExport

@Suite("The place of an export")
struct DestinationTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("export")
  }

  private func export(_ number: Int64, replaces: Bool = true, to path: String? = nil) async throws {
    let fixture = Fixture()
    try await fixture.write([document("c/a", ["n": .integer(number)])])
    _ = try await fixture.exporter.exportAll(of: "p", to: path ?? self.path, replaces: replaces)
  }

  private func number() async throws -> Int64? {
    let fixture = Fixture()
    _ = try await fixture.importer.import(path, .init())
    guard case .integer(let number) = try await fixture.documents().first?.fields["n"] else {
      return nil
    }
    return number
  }

  private var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
  }

  private func make(_ name: String, holding file: String? = "precious") throws {
    try FileManager.default.createDirectory(
      atPath: folder.path(name),
      withIntermediateDirectories: true
    )
    guard let file else { return }
    try "data".write(toFile: folder.path("\(name)/\(file)"), atomically: true, encoding: .utf8)
  }

  @Test("A new export takes the place of an old one, and nothing else is left")
  func replace() async throws {
    try await export(1)
    try await export(2)
    #expect(try await number() == 2)
    #expect(try names == ["export"])
  }

  @Test("An old export is kept unless it may be replaced")
  func keep() async throws {
    try await export(1)
    let refusal = await failure { try await export(2, replaces: false) }
    #expect(refusal?.statusCode == .alreadyExists)
    #expect(try await number() == 1)
    #expect(try names == ["export"])
  }

  @Test("A folder of something else is refused and left alone, an empty one is taken")
  func foreign() async throws {
    try make("export")
    #expect(await failure { try await export(1) }?.statusCode == .failedPrecondition)
    #expect(try files(in: path).keys.sorted() == ["precious"])

    let mixed = folder.path("mixed")
    try await export(1, to: mixed)
    try make("mixed")
    #expect(await failure { try await export(2, to: mixed) }?.statusCode == .failedPrecondition)
    #expect(try files(in: mixed)["precious"] != nil)

    try make("empty", holding: nil)
    try await export(1, replaces: false, to: folder.path("empty"))
  }

  @Test("Parts of other emulators are not removed by an export")
  func otherParts() async throws {
    try await export(1)
    let part = path + "/storage_export"
    try FileManager.default.createDirectory(atPath: part, withIntermediateDirectories: true)
    let refusal = await failure { try await export(2) }

    #expect(refusal?.statusCode == .failedPrecondition)
    #expect(refusal?.statusMessage.contains("storage_export") == true)
    #expect(throws: (any Error).self) { try DataExporter.check(destination: path) }
    #expect(FileManager.default.fileExists(atPath: part))
  }

  @Test("A refused export closes no descriptor of others")
  func othersDescriptors() async throws {
    try make("export")
    let isDone = Atomic(false)
    let folder = folder.path
    async let lost = blocking {
      var lost = 0
      while !isDone.load(ordering: .relaxed) {
        // `open` returns the lowest free descriptor: the one that the destination has just closed.
        let mine = open(folder, O_RDONLY | O_CLOEXEC)
        sched_yield()
        if fcntl(mine, F_GETFD) >= 0 { close(mine) } else { lost += 1 }
      }
      return lost
    }
    for _ in 0..<2000 {
      #expect(throws: StatusError.self) {
        try ExportDestination(path: path, replaces: true) { _ in false }
      }
    }
    isDone.store(true, ordering: .relaxed)
    #expect(await lost == 0)
  }

  @Test("What a killed export left is removed by the next one")
  func leftovers() async throws {
    try await export(1)
    try make(".export.hearth-export.new", holding: "documents-00000.jsonl")
    try await export(2)
    #expect(try await number() == 2)
    #expect(try names == ["export"])
  }

  @Test("An export that a kill left aside is brought back before anything else")
  func restored() async throws {
    try await export(1)
    try FileManager.default.moveItem(atPath: path, toPath: folder.path(".export.hearth-export.old"))
    #expect(try await number() == 1)

    try FileManager.default.moveItem(atPath: path, toPath: folder.path(".export.hearth-export.old"))
    #expect(await failure { try await export(2, replaces: false) }?.statusCode == .alreadyExists)
    #expect(try await number() == 1)
    #expect(try names == ["export"])
  }

  @Test("A second export to the same folder is refused while the first runs")
  func concurrent() async throws {
    let first = try ExportDestination(path: path, replaces: true) { _ in true }
    #expect(await failure { try await export(2) }?.statusCode == .aborted)
    try first.abandon()
    withExtendedLifetime(first) {}
  }

  @Test("A failed export leaves the old one")
  func failed() async throws {
    try await export(1)
    let fixture = Fixture()
    try await fixture.write((0..<30).map { document("c/d\($0)") })
    var batch = StorageBatch()
    batch.put(DocumentKeys.keyspace, DocumentKeys.key(document("c/d9").name), [0xFF])
    try await fixture.storage.commit(batch)
    let status = await failure {
      try await fixture.exporter.exportAll(of: "p", to: path, replaces: true)
    }
    #expect(status != nil)
    #expect(try await number() == 1)
    #expect(try names == ["export"])
  }

  @Test("A place that cannot be written is named with the reason")
  func unwritable() async throws {
    try make("file", holding: "x")
    let refusal = await failure { try await export(1, to: folder.path("file/x/export")) }
    #expect(refusal?.statusCode == .failedPrecondition)
    #expect(refusal?.statusMessage.contains(folder.path("file/x")) == true)
    #expect(await failure { try await export(1, to: "/") }?.statusCode == .invalidArgument)
  }
}

@Suite("Checksums")
struct ChecksumTests {
  @Test("The CRC-32 is that of other tools, however the bytes come")
  func crc32() {
    let bytes = Array("123456789 and more of the same".utf8)
    func checksum(_ pieces: [ArraySlice<UInt8>]) -> String {
      var checksum = Checksum()
      for piece in pieces { Array(piece).withUnsafeBytes { checksum.update($0) } }
      return checksum.text
    }
    #expect(checksum([bytes[..<9]]) == "cbf43926")
    for split in bytes.indices {
      #expect(checksum([bytes[..<split], bytes[split...]]) == checksum([bytes[...]]))
    }
    #expect(checksum([]) == "00000000")
  }
}
