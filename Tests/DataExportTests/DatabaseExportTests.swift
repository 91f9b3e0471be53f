import DataExport
import DatabaseModel
import DatabaseTree
import Foundation
import Identity
import StatusCodes
import TestSupport
import Testing

@Suite("Trees of the Realtime Database in exports")
struct DatabaseExportTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("export")
  }

  /// Writes an export that has only trees, as the official emulator does.
  private func writeExport(_ trees: [String: String], part: String = "database_export") throws {
    let files = FileManager.default
    try files.createDirectory(atPath: path + "/database_export", withIntermediateDirectories: true)
    for (name, text) in trees {
      try Data(text.utf8).write(to: URL(filePath: "\(path)/database_export/\(name)"))
    }
    let metadata = #"{"version": "14.0.0", "database": {"version": "4.11.2", "path": "\#(part)"}}"#
    try Data(metadata.utf8).write(to: URL(filePath: path + "/firebase-export-metadata.json"))
  }

  private func input(_ text: String) throws -> DatabaseInput {
    try DatabaseInput(parsing: Array(text.utf8))
  }

  @Test("A round trip keeps trees with their priorities, and causes no events")
  func roundTrip() async throws {
    let trees = [
      "p-default-rtdb": #"""
      {"a": {".value": -0.5, ".priority": "high"}, "10": true, "9": 1e308, "-1": "\u0000ü😀",
       "list": ["x", null, "z"], "deep": {"b": {"c": {".priority": 3, "d": false}}}}
      """#,
      "other": #""only a leaf""#,
    ]
    let source = Fixture()
    for (name, text) in trees { try await source.setTree(text, of: name) }
    let exported = try await source.exporter.exportAll(of: "p", to: path, replaces: false)
    let target = Fixture()
    let imported = try await target.importer.import(path, .init(isServing: false))

    #expect(exported.instances == 2)
    #expect(imported.instances == 2)
    #expect(imported.skippedParts.isEmpty)
    #expect(try await target.trees.instanceNames() == ["other", "p-default-rtdb"])
    for (name, text) in trees {
      let node = try input(text).node
      #expect(try await target.tree(of: name) == node)
      let file = try Data(contentsOf: URL(filePath: "\(path)/database_export/\(name).json"))
      #expect(Array(file) == node.json(.export) + Array("\n".utf8))
    }
    #expect(try await target.eventsCount() == 0)
  }

  @Test(
    "The text of an exported tree is its JSON",
    arguments: [
      "0", #"{".value": "a", ".priority": 1}"#, #"{".priority": 1, "a": 2}"#,
      #"{"a": {"b": {".priority": "p", "c": {"d": 1}}}, "e": 1}"#,
      #"{"a": {"b": 1, "c": 2}, "a2": {"b": {".priority": 1, "x": 1}, "c": {"x": 1}}, "a10": 1}"#,
      #"{"-1": {"0": 1, "00": 2}, "1": {".priority": 2, "1": {".priority": 3, "1": 1}}, "é\"": 1}"#,
    ]
  )
  func text(text: String) async throws {
    let fixture = Fixture()
    try await fixture.setTree(text, of: "one")
    _ = try await fixture.exporter.exportAll(of: "p", to: path, replaces: false)

    let file = try Data(contentsOf: URL(filePath: path + "/database_export/one.json"))
    let expected = try input(text).node.json(.export)
    #expect(
      String(decoding: file, as: UTF8.self) == String(decoding: expected, as: UTF8.self) + "\n"
    )
  }

  @Test("An export without trees has no part for them, and leaves the trees that are there")
  func noTrees() async throws {
    _ = try await Fixture().exporter.exportAll(of: "p", to: path, replaces: false)
    let target = Fixture()
    try await target.setTree(#"{"a": 1}"#, of: "kept")
    _ = try await target.importer.import(path, .init(replaces: true, isServing: false))

    #expect(!FileManager.default.fileExists(atPath: path + "/database_export"))
    #expect(try await target.tree(of: "kept") == input(#"{"a": 1}"#).node)
  }

  @Test("A tree replaces the one of its instance; other instances go only if all are replaced")
  func replacement() async throws {
    try writeExport(["one.json": #"{"new": 1}"#, "README.txt": "no tree", ".json": "none"])
    let fixture = Fixture()
    for name in ["one", "two"] { try await fixture.setTree(#"{"old": 1}"#, of: name) }

    let imported = try await fixture.importer.import(path, .init(isServing: false))
    #expect(imported.instances == 1)
    #expect(imported.skippedParts.isEmpty)
    #expect(try await fixture.tree(of: "one") == input(#"{"new": 1}"#).node)
    #expect(try await fixture.tree(of: "two") == input(#"{"old": 1}"#).node)
    _ = try await fixture.importer.import(path, .init(replaces: true, isServing: false))
    #expect(try await fixture.tree(of: "one") == input(#"{"new": 1}"#).node)
    #expect(try await fixture.tree(of: "two").isEmpty)
  }

  @Test("A tree that is written in many parts is the tree of its text")
  func parts() async throws {
    let long = String(repeating: "x", count: 100_000)
    let many = (0..<2_500).map { #""k\#($0)": \#($0)"# }.joined(separator: ",")
    let text = #"""
      {".priority": 7, "many": {\#(many)}, "long": {".priority": "p", "a": "\#(long)", "b": {
        ".priority": 2, "c": {"d": "\#(long)", "e": {".value": "\#(long)", ".priority": 1}}}},
       "twice": {"gone": "\#(long)"}, "list": ["\#(long)", null, {"x": "\#(long)"}],
       "times": {".sv": "timestamp"}, "more": {"\#(long.prefix(700))": "\#(long)",
       "rest": [\#(Array(repeating: "\"\(long)\"", count: 12).joined(separator: ","))]},
       "twice": {"there": true}}
      """#
    try writeExport(["big.json": text])
    let fixture = Fixture()
    _ = try await fixture.importer.import(path, .init(isServing: false))
    var tree = try await fixture.tree(of: "big")
    let time = tree["times"].leaf
    tree.set(.empty, at: DatabasePath(["times"]))

    #expect(text.utf8.count > 1 << 20)
    #expect(try tree == input(text).node)
    guard case .number? = time else { return #expect(Bool(false), "no time") }
  }

  @Test(
    "What is wrong with a tree is said with its file, and nothing is written",
    arguments: [
      ("{\"a\": 1,\n}", "is not JSON: line 2, column 1"), ("", "is not JSON"),
      ("{\"a\":\n {\"b.c\": 1}}", "couldn't parse key beginning at 2:3"),
      (#"{"a": {".priority": true, "b": 1}}"#, "a priority must be"),
      (#"{"a": {".sv": "age"}}"#, "an unknown server value"),
      (String(repeating: #"{"a":"#, count: 33) + "1" + String(repeating: "}", count: 33), "deeper"),
      ("\u{FEFF}{}", "is not JSON"),
    ]
  )
  func damage(text: String, problem: String) async throws {
    // The same in a part of a large tree.
    let padding = String(repeating: "x", count: 1 << 20)
    for text in [text, "{\"x\": \"\(padding)\", \"y\":\(text)}"] {
      try writeExport(["a.json": "{}", "b.json": text])
      let fixture = Fixture()
      try await fixture.setTree(#"{"old": 1}"#, of: "a")
      let error = await failure {
        try await fixture.importer.import(path, .init(replaces: true, isServing: false))
      }

      #expect(error?.statusCode == .invalidArgument)
      let message = error?.statusMessage ?? ""
      #expect(message.hasPrefix(path + "/database_export/b.json"), "\(message.prefix(300))")
      if text.utf8.count < 1 << 20 { #expect(message.contains(problem), "\(message)") }
      #expect(try await fixture.tree(of: "a") == input(#"{"old": 1}"#).node)
      #expect(try await DataImporter.unfinished(in: fixture.storage).isEmpty)
    }
  }

  @Test("Files that are not in the folder of the export are not read")
  func outside() async throws {
    try writeExport([:], part: "../database_export")
    #expect(
      await failure { try await Fixture().importer.import(path, .init(isServing: false)) }?
        .statusCode
        == .invalidArgument
    )
    try writeExport([:], part: "none")
    #expect(
      await failure { try await Fixture().importer.import(path, .init(isServing: false)) }?
        .statusCode == .notFound
    )
    try writeExport([:])
    try Data("{}".utf8).write(to: URL(filePath: folder.path("secret.json")))
    try FileManager.default.createSymbolicLink(
      atPath: path + "/database_export/a.json",
      withDestinationPath: folder.path("secret.json")
    )
    let error = await failure { try await Fixture().importer.import(path, .init(isServing: false)) }
    #expect(error?.statusMessage.contains("leads out of the folder") == true)
  }

  @Test("Listeners of a running database see what is imported, and nothing fires")
  func running() async throws {
    try writeExport(["one.json": #"{"new": 1}"#])
    let fixture = Fixture()
    try await fixture.setTree(#"{"old": 1}"#, of: "one")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await fixture.trees.run() }
      defer { group.cancelAll() }
      let (events, event) = AsyncStream.makeStream(of: DatabaseSessionEvent.self)
      let session = try fixture.trees.instance("one").open(as: DatabaseCaller(.admin)) {
        event.yield($0)
      }
      session.listen(1, DatabasePath(["new"]), query: nil, tag: nil, hash: nil)
      var values = events.compactMap { event -> DatabaseNode? in
        if case .value(_, let node, _) = event { node.node } else { nil }
      }.makeAsyncIterator()
      #expect(await values.next() == .empty)
      _ = try await fixture.importer.import(path, .init())
      #expect(await values.next() == DatabaseNode(.number(1)))
      #expect(try await fixture.eventsCount() == 0)
    }
  }

  @Test(
    "A name that no instance can have is refused with its file",
    arguments: ["a b", "ü", "a.b"]
  )
  func name(name: String) async throws {
    try writeExport(["\(name).json": "{}"])
    let error = await failure {
      try await Fixture().importer.import(path, .init(isServing: false))
    }
    #expect(error?.statusMessage.contains("\(name).json") == true)
  }

  @Test("A file of JSON is the tree of the instance that is named for it")
  func file() async throws {
    let file = folder.path("tree.json")
    try Data(#"{"users/tina": 1}"#.utf8).write(to: URL(filePath: file))
    let fixture = Fixture()
    try await fixture.setTree(#"{"old": 1}"#, of: "two")
    let refused = await failure {
      try await fixture.importer.import(file, .init(instance: "one", isServing: false))
    }
    #expect(refused?.statusMessage.contains("couldn't parse key beginning at 1:2") == true)
    try Data(#"{"users": {"tina": 1}}"#.utf8).write(to: URL(filePath: file))
    let imported = try await fixture.importer.import(
      file,
      .init(replaces: true, instance: "one", isServing: false)
    )

    #expect(imported.instances == 1)
    #expect(try await fixture.tree(of: "one") == input(#"{"users": {"tina": 1}}"#).node)
    // The file stands for its instance only.
    #expect(try await fixture.tree(of: "two") == input(#"{"old": 1}"#).node)
  }
}

extension Fixture {
  fileprivate func tree(of instance: String) async throws -> DatabaseNode {
    try await trees.instance(instance).read(.root, as: DatabaseCaller(.admin))
  }

  fileprivate func setTree(_ text: String, of instance: String) async throws {
    let input = try DatabaseInput(parsing: Array(text.utf8))
    try await trees.instance(instance).load(.set(.root, input))
  }
}
