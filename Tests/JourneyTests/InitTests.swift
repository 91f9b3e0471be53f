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

  @Test("The sources it writes are the starter targets of this package, but for the modules' names")
  func sources() async throws {
    let command = try await hearth("My-App_2", "--hearth-path", checkout)
    #expect(command.status == 0, "\(command.errors)")
    #expect(command.output.contains("cd My-App_2\n  swift test"), "\(command.output)")
    #expect(command.output.contains("hearth start --watch"))

    let templates = "\(checkout)/Sources/Server/HearthCLI/Templates"
    let sources = try FileManager.default.subpathsOfDirectory(atPath: templates).filter {
      $0.hasSuffix(".swift")
    }
    #expect(sources.count == 7)
    for source in sources {
      let own = try text("\(templates)/\(source)").split(separator: "\n")
      let its = try text(folder.path("My-App_2/\(source)")).split(separator: "\n")
      // The new names of the modules may change the order of the imports.
      let renamed = own.map {
        String($0).replacingOccurrences(of: "import Starter", with: "import ")
      }
      #expect(its.map(String.init).sorted() == renamed.sorted(), "\(source)")
    }
    let manifest = try text(folder.path("My-App_2/Package.swift"))
    #expect(manifest.contains(#"name: "my-app-2""#))
    #expect(manifest.contains(#".package(name: "hearth", path: "\#(checkout)")"#))
    let firebase = try text(folder.path("My-App_2/firebase.json"))
    #expect(firebase.contains(#""configuration": "debug""#))
    #expect(firebase.contains(#""rules": "firestore.rules""#))
    let project = try text(folder.path("My-App_2/.firebaserc"))
    #expect(project.contains(#""demo-my-app-2""#))
    let ignored = try text(folder.path("My-App_2/.gitignore")).split(separator: "\n")
    #expect(Set([".build/", ".hearth/", ".secret.local", ".env.local"]).isSubset(of: ignored))
    #expect(!ignored.contains { $0.hasPrefix(".vscode") })
  }

  private func run(_ tool: String, _ arguments: String..., in folder: String) async throws
    -> HearthCommand
  {
    try await HearthCommand.run(
      [tool] + arguments,
      in: folder,
      program: URL(filePath: "/usr/bin/env")
    )
  }

  @Test("Its modules compile outside of Hearth's package, where only what is public can be used")
  func onlyPublic() async throws {
    #expect(try await hearth("app").status == 0)
    // The modules of Hearth are those beside this test, so nothing of it is compiled again.
    let script = """
      set -eu
      cd "$1"
      checkout=$2
      built=$3
      maps=
      for map in "$checkout"/Sources/C/*/module.modulemap \
        "$checkout"/Sources/C/*/include/module.modulemap \
        "$checkout"/.build/checkouts/*/Sources/*/include/module.modulemap \
        "$built"/*.build/module.modulemap
      do
        [ ! -e "$map" ] || maps="$maps -Xcc -fmodule-map-file=$map"
      done
      compile() {
        swiftc -swift-version 6 -package-name app -module-cache-path cache \
          -I modules -I "$built/Modules" $maps "$@"
      }
      emit() {
        compile -emit-module -enable-testing -parse-as-library \
          -module-name "$1" -emit-module-path "modules/$1.swiftmodule" Sources/"$1"/*.swift
      }
      mkdir modules
      emit Models
      emit Functions
      compile -typecheck -module-name Worker Sources/Worker/main.swift
      compile -typecheck -module-name FunctionsTests Tests/FunctionsTests/*.swift
      """
    let built = JourneyProject.binary("hearth").deletingLastPathComponent().path
    let compiled = try await run(
      "sh",
      "-c",
      script,
      "compile",
      folder.path("app"),
      checkout,
      built,
      in: folder.path
    )

    #expect(compiled.status == 0, "\(compiled.errors)")
  }

  @Test("An app can import its models, for which nothing of Hearth is fetched or built")
  func modelsForAnApp() async throws {
    #expect(try await hearth("backend").status == 0)
    let app = folder.path("app")
    try FileManager.default.createDirectory(
      atPath: app + "/Sources/App",
      withIntermediateDirectories: true
    )
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription

      let package = Package(
        name: "app",
        platforms: [.macOS(.v15)],
        dependencies: [.package(path: "../backend")],
        targets: [
          .executableTarget(
            name: "App",
            dependencies: [.product(name: "Models", package: "backend")]
          )
        ]
      )
      """
    try manifest.write(toFile: app + "/Package.swift", atomically: true, encoding: .utf8)
    // The extension of the README, over a type with the call of Firebase's library.
    let readme = try text(folder.path("backend/README.md"))
    let start = try #require(readme.range(of: "extension Functions {"))
    let end = try #require(readme.range(of: "```", range: start.upperBound..<readme.endIndex))
    let example = readme[start.lowerBound..<end.lowerBound]
    #expect(example.split(separator: "\n").count <= 11)
    let source = """
      import Foundation
      import Models

      struct Callable<Request: Encodable, Response: Decodable> {
        func call(_ request: Request) async throws -> Response {
          try JSONDecoder().decode(Response.self, from: Data(#"{"text": "Hello!"}"#.utf8))
        }
      }
      final class Functions: Sendable {
        static func functions() -> Functions { Functions() }
        func httpsCallable<Request: Encodable, Response: Decodable>(
          _ name: String,
          requestAs: Request.Type = Request.self,
          responseAs: Response.Type = Response.self
        ) -> Callable<Request, Response> {
          print("Calls \\(name)")
          return Callable()
        }
      }
      \(example)
      print(greeting.text)
      """
    try source.write(toFile: app + "/Sources/App/main.swift", atomically: true, encoding: .utf8)
    let built = try await run("swift", "build", "--disable-sandbox", in: app)

    #expect(built.status == 0, "\(built.output)\(built.errors)")
    let ran = try await run(".build/debug/App", in: app)
    #expect(ran.output == "Calls greeting\nHello!\n")
    let fetched = try FileManager.default.contentsOfDirectory(atPath: app + "/.build/checkouts")
    #expect(fetched.isEmpty)
  }

  @Test("Its manifest has the program that firebase.json names, and its tests")
  func manifest() async throws {
    // Libraries of the same names stand for those of Hearth, whose build takes minutes.
    let names = ["FirestoreClient", "FunctionsRuntime", "FunctionsTesting"]
    let libraries = names.map { ".library(name: \"\($0)\", targets: [\"\($0)\"])" }
    let targets = names.map { ".target(name: \"\($0)\", path: \"Sources/Author/\($0)\")" }
    func write(_ text: String, to path: String) throws {
      let file = URL(filePath: folder.path(path))
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    try write(
      """
      // swift-tools-version: 6.2
      import PackageDescription

      let package = Package(
        name: "hearth",
        platforms: [.macOS(.v15)],
        products: [\(libraries.joined(separator: ", "))],
        targets: [\(targets.joined(separator: ", "))]
      )
      """,
      to: "hearth/Package.swift"
    )
    for name in names { try write("// Empty.", to: "hearth/Sources/Author/\(name)/\(name).swift") }
    let written = try await hearth("app", "--hearth-path", folder.path("hearth"))
    #expect(written.status == 0, "\(written.errors)")
    try write("import Models", to: "app/Sources/Functions/WelcomeFunctions.swift")
    try write("import Functions\nprint(\"Runs\")", to: "app/Sources/Worker/main.swift")
    for name in ["WelcomeTests", "RulesTests"] {
      try write("import Functions\nimport Models", to: "app/Tests/FunctionsTests/\(name).swift")
    }
    let app = folder.path("app")
    let built = try await run("swift", "build", "--disable-sandbox", "--build-tests", in: app)

    #expect(built.status == 0, "\(built.output)\(built.errors)")
    #expect(try text(app + "/firebase.json").contains(#""product": "functions-worker""#))
    #expect(try await run(".build/debug/functions-worker", in: app).output == "Runs\n")
  }

  @Test("The settings for Visual Studio Code name the built program, and tasks that are there")
  func debugSettings() async throws {
    struct Launch: Decodable {
      struct Configuration: Decodable {
        var program: String
        var env: [String: String]
        var preLaunchTask: String
      }
      struct Input: Decodable { var id: String }
      var configurations: [Configuration]
      var inputs: [Input]
    }
    struct Tasks: Decodable {
      struct Task: Decodable {
        var label: String
        var command: String
      }
      var tasks: [Task]
    }
    #expect(try await hearth("app").status == 0)
    func read<File: Decodable>(_ name: String, as type: File.Type) throws -> File {
      try JSONDecoder().decode(type, from: Data(text(folder.path("app/.vscode/\(name)")).utf8))
    }
    let launch = try read("launch.json", as: Launch.self)
    let tasks = try read("tasks.json", as: Tasks.self).tasks
    let manifest = try text(folder.path("app/Package.swift"))

    #expect(launch.configurations.count == 2)
    for configuration in launch.configurations {
      #expect(configuration.env["HEARTH_HUB"] == "127.0.0.1:4400")
      let product = try #require(configuration.program.split(separator: "/").last)
      #expect(manifest.contains("name: \"\(product)\""))
      let task = try #require(tasks.first { $0.label == configuration.preLaunchTask })
      #expect(task.command == "swift build --product \(product)")
    }
    let inputs = launch.inputs.map { "${input:\($0.id)}" }
    #expect(inputs == launch.configurations.compactMap { $0.env["FUNCTION_TARGET"] })
  }

  @Test(
    "A new folder whose name no package can have is refused with a name that one can",
    arguments: [
      ("bad name!", "bad-name"), ("2fast", "app-2fast"), ("täglich", "t-glich"),
      ("!!!", "functions"),
      ("deep/bad name", "deep/bad-name"),
      ("a-name-of-more-than-25-characters", "a-name-of-more-than-25-ch"),
    ]
  )
  func badName(name: String, better: String) async throws {
    let refused = try await hearth(name)

    #expect(refused.status == 2)
    #expect(
      refused.errors.contains("cannot be the name of a package: use letters, digits, - and _")
    )
    #expect(refused.errors.hasSuffix("Try: hearth init \(better)\n"), "\(refused.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    #expect(try await hearth(better).status == 0)
  }

  @Test("An empty folder of any name becomes a package, also the current one; a name must be given")
  func anyEmptyFolder() async throws {
    let path = folder.path("My Projects")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let written = try await HearthCommand.run("init", ".", in: path)

    #expect(written.status == 0, "\(written.errors)")
    #expect(written.output.contains("The package is my-projects, the project demo-my-projects."))
    #expect(!written.output.contains("  cd "))
    #expect(try await hearth("").status == 2)
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
    for option in ["--hearth-url", "--hearth-branch"] {
      let injected = try await hearth("nowhere", option, #"x", y: "z"#)
      #expect(injected.status == 2 && injected.errors.contains("\(option) is"))
    }
  }

  @Test("A folder that holds anything but .git is left as it is")
  func occupied() async throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("used/.git"),
      withIntermediateDirectories: true
    )
    try Data().write(to: URL(filePath: folder.path("used/mine")))
    let used = try await hearth("used")
    #expect(used.status == 1, "\(used.errors)")
    #expect(used.errors.contains("is not empty (it has mine)"), "\(used.errors)")
    #expect(used.errors.hasSuffix("Try: hearth init used/functions\n"), "\(used.errors)")
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

  @Test("Its security rules are in order, and closed")
  func rules() async throws {
    #expect(try await hearth("app").status == 0)
    let checked = try await HearthCommand.run("rules", "check", in: folder.path("app"))
    #expect(checked.output == "firestore.rules is in order.\n", "\(checked.errors)")
    // Doctor may find faults of this machine, but not of the rules.
    let report = try await HearthCommand.run(
      ["doctor"],
      in: folder.path("app"),
      environment: ["TMPDIR": folder.path]
    )
    let line = report.output.split(separator: "\n").first { $0.hasPrefix("security rules") }
    #expect(line?.contains(" ok ") == true, "\(report.output)")
  }
}
