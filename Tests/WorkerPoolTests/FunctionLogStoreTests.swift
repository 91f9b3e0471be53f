import Foundation
import Invocation
import TestSupport
import Testing

@testable import WorkerPool

@Suite("Function log")
struct FunctionLogStoreTests {
  private static let day = Date(timeIntervalSince1970: 1_770_000_000.5)

  private func store(
    folder: String? = nil,
    _ configuration: FunctionLogStore.Configuration = .init()
  ) -> FunctionLogStore {
    FunctionLogStore(folder: folder, configuration: configuration, now: { Self.day })
  }

  @Test("Lines are kept up to the bound, and found by function")
  func bounded() async {
    let store = store(.init(entriesMax: 4))
    for number in 0..<6 {
      store.append(
        function: number.isMultiple(of: 2) ? "a" : "b",
        level: "info",
        message: "\(number)"
      )
    }

    #expect(await store.entries().map(\.message) == ["2", "3", "4", "5"])
    #expect(await store.entries(function: "a").map(\.message) == ["2", "4"])
    #expect(await store.entries(limit: 1).map(\.message) == ["5"])
    #expect(await store.entries(limit: 1).first?.time == "2026-02-02T02:40:00.500Z")
  }

  @Test("The next run finds the lines of the one before")
  func survives() async throws {
    let folder = try TemporaryFolder()
    let first = store(folder: folder.path("logs"))
    first.append(
      function: "a",
      level: "info",
      message: "one",
      invocation: "i",
      metadata: ["k": "v"]
    )
    await first.flush()

    let second = store(folder: folder.path("logs"))
    second.append(function: "a", level: "info", message: "two")
    let entries = await second.entries(function: "a")
    #expect(entries.map(\.message) == ["one", "two"])
    #expect(entries.first?.metadata == ["k": "v"])
  }

  @Test("Files are turned over and the oldest goes")
  func rotates() async throws {
    let folder = try TemporaryFolder()
    let store = store(folder: folder.path, .init(fileBytesMax: 300, filesMax: 3))
    for number in 0..<40 {
      store.append(function: "a", level: "info", message: "line \(number)")
      await store.flush()
    }

    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(Set(names).isSubset(of: ["functions.1.jsonl", "functions.2.jsonl", "functions.jsonl"]))
    #expect(names.contains("functions.2.jsonl"))
    let next = self.store(folder: folder.path, .init(fileBytesMax: 300, filesMax: 3))
    let found = await next.entries().map(\.message)
    #expect(found.count < 40)
    #expect(found == (40 - found.count..<40).map { "line \($0)" })
  }

  @Test("A follower sees the lines of its function from then on")
  func follows() async {
    let store = store()
    store.append(function: "a", level: "info", message: "before")
    var lines = store.stream(function: "a").makeAsyncIterator()
    store.append(function: "b", level: "info", message: "other")
    store.append(function: "a", level: "info", message: "after")

    #expect(await lines.next()?.message == "after")
  }

  @Test("Each line is shown as it comes")
  func hook() async {
    await confirmation(expectedCount: 2) { seen in
      let store = FunctionLogStore(now: { Self.day }, onEntry: { _ in seen() })
      store.append(function: "a", level: "info", message: "1")
      store.append(function: "b", level: "info", message: "2")
    }
  }
}
