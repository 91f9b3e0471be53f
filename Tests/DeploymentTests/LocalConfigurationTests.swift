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
    // Foundation's own decoding would drop a byte order mark.
    String(decoding: try Data(contentsOf: URL(filePath: folder.path(name))), as: UTF8.self)
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

  /// Texts of which a reader of characters, lines or quotes could make another one.
  private static let hostileValues: [String] = {
    let marks = ["\u{301}", "\u{338}", "\u{200D}", "\u{FE0F}", "\u{1F3FD}"]
    let syntax = ["\"", "'", "\\", "#", " #", "$", "=", " ", "\t", "\n", "\r", "\r\n"]
    let rare = ["\u{85}", "\u{A0}", "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{FFFD}", "\u{10FFFF}"]
    let controls = (Array(1..<32) + Array(127..<160)).map { String(UnicodeScalar(UInt8($0))) }
    let alone = marks + syntax + rare + controls
    return alone.flatMap { ["x\($0)y", "\($0)x", "x\($0)", "\($0)\($0)x\($0)\($0)"] }
      + syntax.flatMap { part in marks.map { "x\(part)\($0)\(part)y" } }
      + ["\u{301}st \"q", "e\u{301}", "\u{E9}", "\\n", "\\v", "\\u0041", "${HOME}", "'a' \"b\""]
  }()

  @Test(
    "No character of a value is lost, and other lines stay byte for byte",
    arguments: [false, true]
  )
  func hostileRoundTrip(isSecret: Bool) throws {
    let others =
      "\u{FEFF}# e\u{301}\u{2028}\r\n\u{B}\nA=\u{85}\u{C}b \r\rexport B = 'x\r\ny' # \u{338}\n"
    let name = isSecret ? ".secret.local" : ".env.local"
    for value in Self.hostileValues {
      try folder.write(name, "\(others)VALUE=1 \n\n \nC=\"\u{301}\"")
      _ = try configuration.set("VALUE", to: value, isSecret: isSecret)

      let user = try UserEnvironment(folder: folder.path, project: "demo-test")
      let read = isSecret ? user.secrets : user.variables
      // Strings are compared by their bytes, because accents composed or not count as equal.
      #expect(
        read["VALUE"].map { Array($0.utf8) } == Array(value.utf8),
        "\(value.debugDescription)"
      )
      let bytes = try Array(text(name).utf8)
      #expect(bytes.starts(with: "\(others)VALUE=".utf8))
      #expect(bytes.reversed().starts(with: "\n\n \nC=\"\u{301}\"".utf8.reversed()))
      #expect(try configuration.unset("VALUE", isSecret: isSecret) == name)
      #expect(try text(name).utf8.elementsEqual("\(others)\n \nC=\"\u{301}\"".utf8))
    }
  }

  @Test(
    "A new line ends as the first one does, and nothing before it changes",
    arguments: [
      ("", "B=2\n"), ("A=1", "A=1\nB=2\n"), ("A=1\r\n", "A=1\r\nB=2\r\n"),
      ("A=1\r\nC=3", "A=1\r\nC=3\r\nB=2\r\n"), ("A=1\n\n  ", "A=1\n\n  \nB=2\n"),
    ]
  )
  func lineEnds(before: String, after: String) throws {
    try folder.write(".env.local", before)
    _ = try configuration.set("B", to: "2", isSecret: false)

    #expect(try text(".env.local").utf8.elementsEqual(after.utf8))
  }

  @Test("A value is replaced by one that differs only in how its accent is written")
  func composition() throws {
    _ = try configuration.set("A", to: "\u{E9}", isSecret: false)
    _ = try configuration.set("A", to: "e\u{301}", isSecret: false)

    #expect(try text(".env.local").utf8.elementsEqual("A=\"e\u{301}\"\n".utf8))
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
