import Foundation
import TestSupport
import Testing

@testable import Deployment

@Suite("User environment")
struct UserEnvironmentTests {
  @Test(
    "A line sets a variable",
    arguments: [
      ("A=b", "b"),
      ("A = b ", "b"),
      ("export A=b", "b"),
      ("A=", ""),
      ("A=b c # comment", "b c"),
      ("A=b#c", "b#c"),
      ("A=#c", ""),
      (#"A="b # c" # comment"#, "b # c"),
      (#"A="b\n\"c\"\\d""#, "b\n\"c\"\\d"),
      ("A='b\\n\"'", #"b\n""#),
      ("# comment\r\n\r\nA=b\r\n", "b"),
      ("A=1\nA=2", "2"),
      ("A=b=c", "b=c"),
      (#"A="\v\'\d""#, "\u{B}'\\d"),
      ("\u{FEFF}A=b", "b"),
      ("# comment\rA=b\r", "b"),
      ("A=b\u{2028}c", "b\u{2028}c"),
      ("A=\u{301}b", "\u{301}b"),
      ("A='\u{301}b'", "\u{301}b"),
      ("#\u{301} comment\nA=b", "b"),
    ]
  )
  func sets(text: String, value: String) throws {
    #expect(try UserEnvironment.parse(text, file: ".env") == ["A": value])
  }

  @Test("A key in double quotes may span lines, as a private key does")
  func spansLines() throws {
    let text = "KEY=\"-----BEGIN\nabc\n-----END\"\nB=1\n"

    #expect(
      try UserEnvironment.parse(text, file: ".env") == [
        "KEY": "-----BEGIN\nabc\n-----END", "B": "1",
      ]
    )
  }

  @Test(
    "A mistake names file and line",
    arguments: [
      ("A=1\nB", ".env:2: expected NAME=value"),
      ("\n1A=b", ".env:2: \"1A\" is not a valid name"),
      ("A=1\nB=\"x\ny", ".env:2: the quote is not closed"),
      ("A B=b", ".env:1: \"A B\" is not a valid name"),
      ("A='b", ".env:1: the quote is not closed"),
    ]
  )
  func mistakes(text: String, message: String) {
    let error = #expect(throws: DeploymentError.self) {
      try UserEnvironment.parse(text, file: ".env")
    }
    #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
  }

  @Test("Later files override earlier ones, and secrets stay apart")
  func order() throws {
    let folder = try TemporaryFolder()
    try folder.write(".env", "A=1\nB=1\nC=1")
    try folder.write(".env.demo", "B=2\nC=2")
    try folder.write(".env.local", "C=3")
    try folder.write(".env.other", "A=4")
    try folder.write(".secret.local", "KEY=s")

    let user = try UserEnvironment(folder: folder.path, project: "demo")
    #expect(user.variables == ["A": "1", "B": "2", "C": "3"])
    #expect(user.secrets == ["KEY": "s"])
  }

  @Test(
    "Reserved names are refused",
    arguments: ["FIREBASE_X", "X_GOOGLE_Y", "EXT_A", "KIT_B", "HEARTH_SOCKET", "PORT", "K_SERVICE"]
  )
  func reserved(key: String) throws {
    let folder = try TemporaryFolder()
    try folder.write(".env", "\(key)=1")

    let error = #expect(throws: DeploymentError.self) {
      try UserEnvironment(folder: folder.path, project: "demo")
    }
    #expect(error?.message.contains("\(key) is reserved") == true)
  }

  @Test("Without files there are no variables")
  func none() throws {
    let user = try UserEnvironment(folder: TemporaryFolder().path, project: "demo")

    #expect(user.variables.isEmpty)
    #expect(user.secrets.isEmpty)
  }
}

extension TemporaryFolder {
  /// Writes a file and optionally makes it executable.
  func write(_ name: String, _ text: String, isExecutable: Bool = false) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
    if isExecutable {
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path(name))
    }
  }
}
