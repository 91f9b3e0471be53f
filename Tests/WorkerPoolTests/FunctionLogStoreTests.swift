import FlowControl
import Foundation
import FunctionLogs
import Testing
import TestSupport

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

  @Test("The bound on memory counts metadata, names and what each line takes by itself")
  func allBytesCount() async {
    let bound = 1 << 20
    let store = store(.init(bytesMax: bound))
    let value = String(repeating: "v", count: 30_000)
    for _ in 0..<100 {
      store.append(function: "a", level: "info", message: "", metadata: ["k": value])
    }
    let large = await store.entries().count
    let details = Dictionary(uniqueKeysWithValues: (0..<100).map { ("\($0)", "") })
    for _ in 0..<200 { store.append(function: "a", level: "info", message: "", metadata: details) }
    let small = await store.entries().count
    let name = String(repeating: "n", count: 30_000)
    for _ in 0..<100 { store.append(function: name, level: "info", message: "") }
    let named = await store.entries().count

    #expect(large <= bound / 30_000)
    #expect(small <= bound / (100 * FunctionLogEntry.detailBytes))
    #expect(named <= bound / 30_000)
    #expect(store.bytes <= bound)
  }

  @Test(
    "A follower that does not read keeps a bounded number of bytes and learns how many lines it missed"
  )
  func slowFollower() async {
    let store = store(.init(followerBytesMax: 1 << 20))
    let stream = store.stream()
    let value = String(repeating: "v", count: 30_000)
    for number in 0..<100 {
      store.append(function: "a", level: "info", message: "\(number)", metadata: ["k": value])
    }
    var lines = stream.makeAsyncIterator()
    let first = await lines.next()
    let second = await lines.next()
    let missed = second.flatMap { Int($0.message) } ?? 0

    #expect(missed > 100 - (1 << 20) / 30_000)
    #expect(
      first?.message == "\(missed) lines were left out here: they came faster than they were read."
    )
    #expect(first?.level == "warning")
  }

  @Test("A follower that has left is no longer kept")
  func followerLeaves() async {
    let store = store()
    let reader = Task { for await _ in store.stream() { break } }
    await eventually("the reader follows") { store.followersCount > 0 }
    store.append(function: "a", level: "info", message: "1")
    await reader.value

    #expect(store.followersCount == 0)
  }

  @Test("A full disk loses lines of the file and says so once there is room")
  func fullDisk() async throws {
    let folder = try TemporaryFolder()
    let file = folder.path("functions.jsonl")
    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "/dev/full")
    let store = store(folder: folder.path)
    for number in 0..<3 {
      store.append(function: "a", level: "info", message: "\(number)")
      await store.flush()
    }
    try FileManager.default.removeItem(atPath: file)
    store.append(function: "a", level: "info", message: "3")
    await store.flush()

    #expect(await store.entries().map(\.message) == ["0", "1", "2", "3"])
    let kept = await self.store(folder: folder.path).entries().map(\.message)
    #expect(kept == ["3 lines were not kept: the disk was too slow, full or failing.", "3"])
  }

  @Test("A closed log has written its lines, and writes nothing more to its folder")
  func closes() async throws {
    let folder = try TemporaryFolder()
    let logs = folder.path("logs")
    let store = store(folder: logs)
    for number in 0..<500 { store.append(function: "a", level: "info", message: "\(number)") }
    await store.close()
    let text = try String(contentsOfFile: logs + "/functions.jsonl", encoding: .utf8)
    try FileManager.default.removeItem(atPath: logs)
    store.append(function: "a", level: "info", message: "late")
    await store.flush()

    #expect(text.contains(#""message":"0""#))
    #expect(!FileManager.default.fileExists(atPath: logs))
    #expect(await store.entries(limit: 1).map(\.message) == ["late"])
  }

  @Test("Lines read from the files keep to the bound on memory")
  func filesKeepBound() async throws {
    let folder = try TemporaryFolder()
    let store = store(folder: folder.path)
    let value = String(repeating: "v", count: 30_000)
    for number in 0..<50 {
      store.append(function: "a", level: "info", message: "\(number)", metadata: ["k": value])
    }
    await store.flush()
    let next = self.store(folder: folder.path, .init(bytesMax: 300_000))

    #expect(await next.entries().map(\.message) == (41..<50).map { "\($0)" })
  }

  @Test("A file of lines is safe to print in a terminal")
  func filesAreSafe() async throws {
    let folder = try TemporaryFolder()
    let store = store(folder: folder.path)
    store.append(function: "a", level: "info", message: "\u{9B}31m\u{202E}")
    await store.flush()
    let text = try String(contentsOfFile: folder.path("functions.jsonl"), encoding: .utf8)

    #expect(text.contains(#"\u009b31m\u202e"#))
    let next = self.store(folder: folder.path)
    #expect(await next.entries().first?.message == "\u{9B}31m\u{202E}")
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
