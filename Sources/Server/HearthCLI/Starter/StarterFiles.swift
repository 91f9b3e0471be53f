/// The files of a new functions package, with their paths in the package.
struct StarterFiles {
  var name: String
  /// The location of Hearth that the package depends on.
  var hearth: Dependency

  /// A location of Hearth.
  enum Dependency: Equatable {
    /// The absolute path of a checkout on this machine.
    case path(String)
    /// The address of a repository and the branch to follow.
    case address(String, branch: String)

    /// The declaration of the dependency in `Package.swift`.
    var declaration: String {
      switch self {
      case .path(let path): ".package(name: \"hearth\", path: \(StarterFiles.quoted(path)))"
      case .address(let address, let branch):
        ".package(url: \(StarterFiles.quoted(address)), branch: \(StarterFiles.quoted(branch)))"
      }
    }

    /// The package identity under which targets name its products.
    var identity: String {
      switch self {
      case .path: return "hearth"
      case .address(let address, _):
        let last = address.split(separator: "/").last.map(String.init) ?? address
        return (last.hasSuffix(".git") ? String(last.dropLast(4)) : last).lowercased()
      }
    }
  }

  /// The files, each with its path and contents.
  var files: [(path: String, text: String)] {
    [
      ("Package.swift", manifest),
      (
        "Sources/Functions/WelcomeFunctions.swift",
        Self.template(PackageResources.WelcomeFunctions_swift)
      ),
      ("Sources/Worker/main.swift", Self.renamed(PackageResources.main_swift)),
      (
        "Tests/FunctionsTests/WelcomeTests.swift", Self.renamed(PackageResources.WelcomeTests_swift)
      ),
      ("firebase.json", Self.firebaseJSON),
      (".firebaserc", firebaseRC),
      (".gitignore", Self.gitignore),
      ("Dockerfile", Self.template(PackageResources.Dockerfile)),
      ("Dockerfile.dockerignore", Self.template(PackageResources.Dockerfile_dockerignore)),
      ("README.md", readme),
    ]
  }

  /// The project ID; the prefix `demo-` keeps all clients of the project offline.
  var project: String { "demo-\(name.lowercased())" }

  /// Returns a package name derived from the name of a folder.
  ///
  /// It consists of letters, digits and hyphens, and begins with a letter.
  static func name(from folder: String) -> String {
    let characters = folder.lowercased().map { character in
      character.isASCII && (character.isLetter || character.isNumber) ? character : "-"
    }
    let words = String(characters).split(separator: "-").joined(separator: "-")
    guard let first = words.first else { return "functions" }
    return String((first.isLetter ? words : "app-\(words)").prefix(nameCharactersMax))
  }

  /// The maximum length of a name: with `demo-`, a project ID has at most 30 characters.
  private static let nameCharactersMax = 25

  /// Renames the module, which is `Functions` in the new package but `StarterFunctions` here.
  private static func renamed(_ source: [UInt8]) -> String {
    var lines = template(source).split(separator: "\n", omittingEmptySubsequences: false).map(
      String.init
    )
    let imports = lines.indices.filter { lines[$0].hasPrefix("import ") }
    for index in imports where lines[index] == "import StarterFunctions" {
      lines[index] = "import Functions"
    }
    let sorted = imports.map { lines[$0] }.sorted()
    for (index, line) in zip(imports, sorted) { lines[index] = line }
    return lines.joined(separator: "\n")
  }

  /// Returns the text of a template.
  static func template(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
  }

  private static func quoted(_ text: String) -> String {
    let escaped = text.map { $0 == "\\" || $0 == "\"" ? "\\\($0)" : String($0) }.joined()
    return "\"\(escaped)\""
  }

  private var manifest: String {
    """
    // swift-tools-version: 6.2
    import PackageDescription

    let package = Package(
      name: "\(name)",
      platforms: [.macOS(.v15)],
      products: [
        .executable(name: "functions-worker", targets: ["Worker"])
      ],
      dependencies: [
        \(hearth.declaration)
      ],
      targets: [
        .target(
          name: "Functions",
          dependencies: [
            .product(name: "FirestoreClient", package: "\(hearth.identity)"),
            .product(name: "FunctionsRuntime", package: "\(hearth.identity)"),
          ]
        ),
        .executableTarget(
          name: "Worker",
          dependencies: [
            "Functions",
            .product(name: "FirestoreClient", package: "\(hearth.identity)"),
            .product(name: "FunctionsRuntime", package: "\(hearth.identity)"),
          ]
        ),
        .testTarget(
          name: "FunctionsTests",
          dependencies: [
            "Functions",
            .product(name: "FunctionsTesting", package: "\(hearth.identity)"),
          ]
        ),
      ]
    )

    """
  }

  private static let firebaseJSON = """
    {
      "functions": {
        "source": ".",
        "product": "functions-worker",
        "configuration": "debug"
      }
    }

    """

  private var firebaseRC: String {
    """
    {
      "projects": {
        "default": "\(project)"
      }
    }

    """
  }

  private static let gitignore = """
    .build/
    .hearth/
    .swiftpm/
    *.xcodeproj
    .env.local
    .secret.local
    .DS_Store

    """

  private var readme: String {
    """
    # \(name)

    Functions in Swift, run by Hearth.

    | file | what it is |
    |---|---|
    | `Sources/Functions/WelcomeFunctions.swift` | the functions: a trigger and a callable |
    | `Sources/Worker/main.swift` | the program that runs them |
    | `Tests/FunctionsTests/WelcomeTests.swift` | a test of both, without a server |
    | `firebase.json`, `.firebaserc` | where the functions are, how they are built, and the project's id |

    ```sh
    swift test                  # run the tests
    hearth start --watch        # run the suite; every change is built and deployed
    hearth exec -- swift test   # run a command beside a suite of its own
    ```

    With the suite running, in a second terminal in this folder, `fire` sends an event without a
    write, and `call` calls as a user:

    ```sh
    hearth fire welcome --document users/tina --data '{"name": "Tina"}'
    hearth call greeting --as tina --data '{"isLoud": true}'
    ```

    `Package.swift` names Hearth by \(dependencyText)
    The functions are built as the tests are, so that a change is served within seconds; for
    measurements `--configuration release` builds them as production does.
    Settings go to `.env`, secrets to `.secret.local`, which is not committed.

    """
  }

  private var dependencyText: String {
    switch hearth {
    case .path:
      """
      the path of a checkout. For others, put its address there:
      `.package(url: "https://…/hearth", branch: "main")`.
      """
    case .address:
      """
      its address. While you work on Hearth itself, put the path of a
      checkout there: `.package(name: "hearth", path: "../hearth")`.
      """
    }
  }
}
