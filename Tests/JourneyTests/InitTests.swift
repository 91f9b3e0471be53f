import Foundation
import TestSupport
import Testing

/// Tests of `hearth init`, whose sources this package also compiles and tests.
@Suite("Init", .timeLimit(.minutes(5)))
struct InitTests {
  private let folder: TemporaryFolder
  /// The repository checkout that contains this test.
  private let checkout = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  init() throws {
    folder = try TemporaryFolder()
  }

  private func hearth(_ arguments: String...) async throws -> HearthCommand {
    try await HearthCommand.run(["init"] + arguments, in: folder.path)
  }

  private func text(_ path: String) throws -> String {
    try String(contentsOfFile: path, encoding: .utf8)
  }

  @Test("The sources it writes are the starter targets of this package, but for the module's name")
  func sources() async throws {
    let command = try await hearth("My App_2", "--hearth-path", checkout)
    #expect(command.status == 0, "\(command.errors)")
    #expect(command.output.contains("hearth start --watch"))

    func expectSame(_ written: String, _ tested: String) throws {
      let own = try text("\(checkout)/Sources/Server/HearthCLI/Templates/\(tested)").split(
        separator: "\n"
      )
      let its = try text(folder.path("My App_2/\(written)")).split(separator: "\n")
      // The new module name may change the order of the imports.
      let renamed = own.map { $0 == "import StarterFunctions" ? "import Functions" : $0 }
      #expect(its.sorted() == renamed.sorted())
    }
    try expectSame(
      "Sources/Functions/WelcomeFunctions.swift",
      "StarterFunctions/WelcomeFunctions.swift"
    )
    try expectSame("Sources/Worker/main.swift", "StarterWorker/main.swift")
    try expectSame(
      "Tests/FunctionsTests/WelcomeTests.swift",
      "StarterFunctionsTests/WelcomeTests.swift"
    )
    let manifest = try text(folder.path("My App_2/Package.swift"))
    #expect(manifest.contains(#"name: "my-app-2""#))
    #expect(manifest.contains(#".package(name: "hearth", path: "\#(checkout)")"#))
    let firebase = try text(folder.path("My App_2/firebase.json"))
    #expect(firebase.contains(#""configuration": "debug""#))
    let project = try text(folder.path("My App_2/.firebaserc"))
    #expect(project.contains(#""demo-my-app-2""#))
  }

  @Test("Hearth is the checkout that the command was built in, or the address that is given")
  func dependency() async throws {
    #expect(try await hearth("here").status == 0)
    #expect(try text(folder.path("here/Package.swift")).contains(#"path: "\#(checkout)""#))
    let address = "https://git.example.com/team/Hearth.git"
    #expect(try await hearth("there", "--hearth-url", address).status == 0)
    let manifest = try text(folder.path("there/Package.swift"))
    #expect(manifest.contains(#".package(url: "\#(address)", branch: "main")"#))
    #expect(manifest.contains(#"package: "hearth""#))
    let nonsense = try await hearth("nowhere", "--hearth-path", folder.path)
    #expect(nonsense.status == 1 && nonsense.errors.contains("not a checkout"))
  }

  @Test("A folder that holds anything but .git is left as it is")
  func occupied() async throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("used/.git"),
      withIntermediateDirectories: true
    )
    try Data().write(to: URL(filePath: folder.path("used/mine")))
    let used = try await hearth("used")
    #expect(used.status == 1 && used.errors.contains("is not empty"), "\(used.errors)")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("used"))
    #expect(names.sorted() == [".git", "mine"])
    #expect(try await hearth("used/mine").errors.contains("is a file"))

    try FileManager.default.removeItem(atPath: folder.path("used/mine"))
    #expect(try await hearth("used").status == 0)
  }

  @Test("Its functions start, deploy and run")
  func runs() async throws {
    #expect(try await hearth("app").status == 0)
    let worker = JourneyProject.binary("StarterWorker").path
    let hearth = JourneyProject.binary("hearth").path
    let command = try await HearthCommand.run(
      "exec",
      "--strict",
      "--executable",
      worker,
      "--",
      "sh",
      "-c",
      "'\(hearth)' fire welcome --document users/tina --data '{\"name\": \"Tina\"}' >&2 && "
        + "'\(hearth)' call greeting --as tina --data '{\"isLoud\": true}'",
      in: folder.path("app")
    )

    #expect(command.status == 0, "\(command.errors)")
    #expect(command.output.contains("WELCOME, TINA!"), "\(command.output)")
  }
}
