import Foundation
import TestSupport
import Testing

@testable import HearthCLI

@Suite("Project files")
struct ProjectFilesTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ text: String, to name: String) throws {
    try text.write(toFile: folder.path(name), atomically: true, encoding: .utf8)
  }

  private func databaseRules() throws -> [String: String] {
    try ProjectFiles(folder: folder.path).databaseRules(of: "demo-p")
  }

  @Test("The rules of an object are those of the project's first instance")
  func databaseObject() throws {
    #expect(try databaseRules().isEmpty)
    try write("{}", to: "database.rules.json")
    #expect(
      try databaseRules() == ["demo-p-default-rtdb": folder.path("database.rules.json")]
    )
    try write(#"{"database": {"rules": "own.json"}}"#, to: "firebase.json")
    #expect(try databaseRules() == ["demo-p-default-rtdb": folder.path("own.json")])
    try write(#"{"database": {}}"#, to: "firebase.json")
    #expect(try databaseRules().isEmpty)
    #expect(try ProjectFiles(folder: folder.path).hasDatabase)
  }

  @Test("A list has rules for instances and for the instances of targets")
  func databaseList() throws {
    try write(
      """
      {"database": [{"rules": "a.json", "instance": "one"}, {"rules": "b.json", "target": "t"},
                    {"instance": "open"}]}
      """,
      to: "firebase.json"
    )
    try write(
      #"{"targets": {"demo-p": {"database": {"t": ["two", "three"]}}}}"#,
      to: ".firebaserc"
    )
    #expect(
      try databaseRules() == [
        "one": folder.path("a.json"), "two": folder.path("b.json"),
        "three": folder.path("b.json"),
      ]
    )
  }

  @Test(
    "Settings of the database that name no instance are refused",
    arguments: [
      (#"[{"rules": "a.json"}]"#, #"Must supply either "target" or "instance""#),
      (#"[{"rules": "a.json", "target": "t"}]"#, "targets.demo-p.database.t to .firebaserc"),
    ]
  )
  func databaseWithoutInstance(setting: String, message: String) throws {
    try write("{\"database\": \(setting)}", to: "firebase.json")

    let error = #expect(throws: CommandError.self) { try databaseRules() }
    #expect(error?.message.contains(message) == true)
    #expect(error?.message.contains("firebase.json") == true)
  }
}
