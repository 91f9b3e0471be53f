import AuthAccounts
import DocumentModel
import Foundation
import Testing
import TestSupport
import VectorIndex

@testable import DataExport

@Suite("The moment of an export")
struct ExportMomentTests {
  private let folder: TemporaryFolder
  private let fixture = Fixture()

  init() throws { folder = try TemporaryFolder() }

  private func writeOfEach(_ id: String) async throws {
    try await fixture.vectors.upsert(
      [VectorRecord(id: id, values: [1, 2])],
      index: "ix",
      namespace: ""
    )
    try await fixture.accounts.change { try $0.put(UserAccount(localId: id)) }
    try await fixture.write([document("a/\(id)")])
  }

  private func export(_ name: String) async throws -> [Int] {
    let summary = try await fixture.exporter.exportAll(
      of: "p",
      to: folder.path(name),
      replaces: false
    )
    return [summary.documents, summary.users, summary.vectors]
  }

  @Test("Documents, users and vectors are those of one moment, whatever is written in between")
  func oneMoment() async throws {
    try await fixture.vectors.create(
      VectorIndexDescription(name: "ix", dimension: 2, metric: .cosine)
    )
    // More documents than one page holds, so that the last read follows the moment.
    for number in 0..<20 { try await writeOfEach("\(number)") }
    let readsBefore = fixture.storage.readsBegun
    #expect(try await export("first") == [20, 20, 20])

    let reads = fixture.storage.readsBegun - readsBefore
    fixture.storage.overtakeRead(after: reads - 1) { try await writeOfEach("more") }
    #expect(try await export("second") == [20, 20, 20])
    #expect(try await export("third") == [21, 21, 21])
  }
}
