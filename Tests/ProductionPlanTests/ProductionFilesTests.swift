import Foundation
import Manifests
import Testing

@testable import ProductionPlan

@Suite("Production files")
struct ProductionFilesTests {
  private func files(memory: Int? = nil) throws -> ProductionFiles {
    let functions = ["call": callable { $0.availableMemoryMb = memory }]
    return try ProductionFiles(CloudPlan(functions: functions, settings: .init()))
  }

  /// Returns the folder that a write leaves, and its record.
  private func written(_ files: ProductionFiles) throws -> ([String: Data], ProductionRecord) {
    let folder = Dictionary(uniqueKeysWithValues: files.files.map { ($0.name, Data($0.text.utf8)) })
    let record = try #require(folder[ProductionFiles.recordName])
    return (folder, try ProductionRecord(json: record))
  }

  /// Returns the record as a version without hashes wrote it.
  private func withoutHashes(_ files: ProductionFiles) throws -> ProductionRecord {
    let text = try #require(files.files.last?.text)
    let members = try #require(
      try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    )
    let older = members.filter { $0.key != "files" }
    return try ProductionRecord(json: JSONSerialization.data(withJSONObject: older))
  }

  @Test("An edited file is found whether or not the plans differ")
  func edited() throws {
    var (folder, record) = try written(files())
    folder["main.tf"]?.append(contentsOf: "# mine\n".utf8)

    for memory in [nil, 512] {
      let next = try files(memory: memory)
      let lines = next.differences(in: folder, since: record, plansDiffer: memory != nil)
      #expect(next.edited(in: folder, since: record) == ["main.tf"])
      #expect(lines.count == 1)
      #expect(lines.first?.hasPrefix("! main.tf was edited") == true)
      #expect(lines.first?.contains("main.tf.old") == true)
    }
  }

  @Test("A folder that nobody edited has no edited file, even if the plans differ")
  func unedited() throws {
    let (folder, record) = try written(files())
    let next = try files(memory: 512)

    #expect(next.edited(in: folder, since: record) == [])
    #expect(next.differences(in: folder, since: record, plansDiffer: true) == [])
    #expect(
      next.differences(in: folder, since: record, plansDiffer: false) == [
        "! main.tf was written by another version of hearth, or with other options",
        "! gcloud.sh was written by another version of hearth, or with other options",
      ]
    )
  }

  @Test("An edit that is equal to what is generated needs no copy")
  func sameEdit() throws {
    var (folder, record) = try written(files())
    let next = try files(memory: 512)
    folder["main.tf"] = try written(next).0["main.tf"]

    #expect(next.edited(in: folder, since: record) == [])
  }

  @Test("A removed file is missing, and a file that the record does not name is somebody's")
  func missing() throws {
    var (folder, record) = try written(files())
    folder["image.sh"] = nil
    folder["Dockerfile"] = Data("FROM mine\n".utf8)
    let plan = try CloudPlan(functions: ["call": callable()], settings: .init())
    let next = try ProductionFiles(plan, dockerfile: "FROM scratch\n")

    #expect(next.edited(in: folder, since: record) == ["Dockerfile"])
    #expect(
      next.differences(in: folder, since: record, plansDiffer: true).map { $0.prefix(14) } == [
        "! image.sh is ", "! Dockerfile w",
      ]
    )
  }

  @Test("A record without hashes counts every file as not edited; no record counts each as edited")
  func olderRecord() throws {
    let first = try files()
    var (folder, _) = try written(first)
    folder["main.tf"] = Data("# mine\n".utf8)
    let older = try withoutHashes(first)

    #expect(first.edited(in: folder, since: older) == [])
    #expect(
      first.differences(in: folder, since: older, plansDiffer: false) == [
        "! main.tf was edited, or written by another version of hearth"
      ]
    )
    #expect(first.differences(in: folder, since: older, plansDiffer: true) == [])
    #expect(first.edited(in: folder, since: nil) == ["main.tf"])
  }

  @Test("The rate of a queue is above 0 in every file")
  func smallRate() throws {
    let functions = [
      "work": function {
        $0.taskQueueTrigger = .init()
        $0.taskQueueTrigger?.rateLimits = .init(maxDispatchesPerSecond: 0.0001)
      }
    ]
    let plan = try CloudPlan(functions: functions, settings: .init())

    #expect(GcloudScripts(plan: plan).make.contains("--max-dispatches-per-second=0.0001 "))
    #expect(TerraformFiles(plan: plan).main.contains("max_dispatches_per_second = 0.0001\n"))
  }
}
