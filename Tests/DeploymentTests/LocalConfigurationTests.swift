import Foundation
import TestSupport
import Testing

@testable import Deployment

@Suite("Local configuration")
struct LocalConfigurationTests {
  private let folder: TemporaryFolder
  private let configuration: LocalConfiguration

  init() throws {
    folder = try TemporaryFolder()
    configuration = LocalConfiguration(folder: folder.path, project: "demo-test")
  }

  private func text(_ name: String) throws -> String {
    try String(contentsOfFile: folder.path(name), encoding: .utf8)
  }

  @Test("A change keeps comments, order, export and all other lines")
  func keeps() throws {
    let before = "# Models\nexport CHAT=old # the small one\n\nKEY=\"a\nb\"\n# end\nLAST=1"
    try folder.write(".env.local", before)

    #expect(try configuration.set("CHAT", to: "new", isSecret: false) == ".env.local")
    #expect(try text(".env.local") == "# Models\nexport CHAT=new\n\nKEY=\"a\nb\"\n# end\nLAST=1")
    _ = try configuration.set("KEY", to: "c", isSecret: false)
    _ = try configuration.set("FRESH", to: "2", isSecret: false)
    #expect(
      try text(".env.local") == "# Models\nexport CHAT=new\n\nKEY=c\n# end\nLAST=1\nFRESH=2\n"
    )
    #expect(try configuration.unset("KEY", isSecret: false) == ".env.local")
    #expect(try configuration.unset("KEY", isSecret: false) == nil)
    #expect(try text(".env.local") == "# Models\nexport CHAT=new\n\n# end\nLAST=1\nFRESH=2\n")
  }

  @Test(
    "Whatever a value holds, it is read as it was set",
    arguments: [
      "", " ", "plain", "a b", "# no comment", "a #b", "\"quoted\"", "it's", "\\n", "back\\slash",
      "line\nline\r\nline\ttab", "ünïcödé 🎈", "a=b=c", "$HOME `x` $(y)",
      "-----BEGIN KEY-----\nQ==\n",
    ]
  )
  func roundTrip(value: String) throws {
    _ = try configuration.set("BEFORE", to: "1", isSecret: false)
    _ = try configuration.set("VALUE", to: value, isSecret: false)
    _ = try configuration.set("AFTER", to: "2", isSecret: false)

    let read = try UserEnvironment(folder: folder.path, project: "demo-test").variables
    #expect(read == ["BEFORE": "1", "VALUE": value, "AFTER": "2"])
  }

  @Test("Secrets are in a file that only its owner reads, however it was before")
  func secretMode() throws {
    try folder.write(".secret.local", "OLD=1\n")
    #expect(chmod(folder.path(".secret.local"), 0o644) == 0)

    #expect(try configuration.set("KEY", to: "hush", isSecret: true) == ".secret.local")
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path(".secret.local"))
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    #expect(try text(".secret.local") == "OLD=1\nKEY=hush\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [".secret.local"])
  }

  @Test(
    "Names of the platform and what is no name are refused, and nothing is written",
    arguments: ["FIREBASE_X", "K_SERVICE", "HEARTH_HUB", "PORT", "1A", "A-B", "", "A B"]
  )
  func refused(name: String) throws {
    #expect(throws: DeploymentError.self) {
      try configuration.set(name, to: "x", isSecret: false)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("A secret is never empty, and no value ends at a NUL or is too long for a secret")
  func refusedValue() throws {
    for value in ["", " \t\n"] {
      let error = #expect(throws: DeploymentError.self) {
        try configuration.set("KEY", to: value, isSecret: true)
      }
      #expect(error?.message == "The secret KEY is empty; give it a value, or remove it.")
    }
    #expect(throws: DeploymentError.self) {
      try configuration.set("KEY", to: "a\0b", isSecret: false)
    }
    let longest = String(repeating: "x", count: LocalConfiguration.valueBytesMax)
    #expect(throws: DeploymentError.self) {
      try configuration.set("KEY", to: longest + "x", isSecret: false)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)

    #expect(try configuration.set("KEY", to: longest, isSecret: true) == ".secret.local")
  }

  @Test("Of several files the later one counts, and each setting says where it is from")
  func sources() throws {
    try folder.write(".env", "A=1\nB=1\n")
    try folder.write(".env.demo-test", "B=2\n")
    try folder.write(".env.local", "C=3\n")
    try folder.write(".secret.local", "A=hush\n")

    let settings = try configuration.settings()
    #expect(settings.map(\.name) == ["A", "B", "C", "A"])
    #expect(settings.map(\.source) == [".env", ".env.demo-test", ".env.local", ".secret.local"])
    #expect(settings.map(\.value) == ["1", "2", "3", "hush"])
  }

  @Test("A file that cannot be read is left as it is, and the error names the line")
  func malformed() throws {
    try folder.write(".env.local", "A=1\nnonsense\n")

    let error = #expect(throws: DeploymentError.self) {
      try configuration.set("B", to: "2", isSecret: false)
    }
    #expect(error?.message.contains(".env.local:2: expected NAME=value.") == true)
    #expect(try text(".env.local") == "A=1\nnonsense\n")
  }
}
