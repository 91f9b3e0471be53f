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
        "Sources/Models/CallableName.swift", Self.template(PackageResources.CallableName_swift)
      ),
      ("Sources/Models/Greeting.swift", Self.template(PackageResources.Greeting_swift)),
      ("Sources/Models/User.swift", Self.template(PackageResources.User_swift)),
      (
        "Sources/Functions/WelcomeFunctions.swift",
        Self.renamed(PackageResources.WelcomeFunctions_swift)
      ),
      ("Sources/Worker/main.swift", Self.renamed(PackageResources.main_swift)),
      (
        "Tests/FunctionsTests/WelcomeTests.swift", Self.renamed(PackageResources.WelcomeTests_swift)
      ),
      ("Tests/FunctionsTests/RulesTests.swift", Self.renamed(PackageResources.RulesTests_swift)),
      ("firestore.rules", Self.template(PackageResources.firestore_rules)),
      ("firebase.json", Self.firebaseJSON),
      (".firebaserc", firebaseRC),
      (".gitignore", Self.gitignore),
      (".vscode/extensions.json", Self.template(PackageResources.extensions_json)),
      (".vscode/launch.json", Self.template(PackageResources.launch_json)),
      (".vscode/tasks.json", Self.template(PackageResources.tasks_json)),
      ("Dockerfile", Self.template(PackageResources.Dockerfile)),
      ("Dockerfile.dockerignore", Self.template(PackageResources.Dockerfile_dockerignore)),
      ("README.md", readme),
    ]
  }

  /// The project ID; the prefix `demo-` keeps all clients of the project offline.
  var project: String { "demo-\(name.lowercased())" }

  /// Returns a package name derived from the name of a folder.
  ///
  /// It consists of lowercase letters, digits and hyphens, and begins with a letter.
  static func name(from folder: String) -> String {
    let characters = folder.lowercased().map { isLetterOrDigit($0) ? $0 : "-" }
    let words = words(String(characters))
    guard let first = words.first else { return "functions" }
    return Self.words(String((first.isLetter ? words : "app-\(words)").prefix(nameCharactersMax)))
  }

  /// Returns true if a name that a person chose can be that of a package and of its folder.
  static func isName(_ name: String) -> Bool {
    guard let first = name.first, first.isASCII, first.isLetter else { return false }
    return name.count <= nameCharactersMax
      && name.allSatisfy { isLetterOrDigit($0) || $0 == "-" || $0 == "_" }
  }

  /// The names that `isName` accepts, as words for a person.
  static let nameRule =
    "letters, digits, - and _, with a letter first, and at most \(nameCharactersMax) characters"

  /// The maximum length of a name: with `demo-`, a project ID has at most 30 characters.
  private static let nameCharactersMax = 25

  private static func isLetterOrDigit(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber)
  }

  /// Returns a text with one hyphen between its parts and none at the ends.
  private static func words(_ text: String) -> String {
    text.split(separator: "-").joined(separator: "-")
  }

  /// Renames the modules, which are `Functions` and so on, but `StarterFunctions` and so on here.
  private static func renamed(_ source: [UInt8]) -> String {
    var lines = template(source).split(separator: "\n", omittingEmptySubsequences: false).map(
      String.init
    )
    for index in lines.indices {
      for prefix in ["import ", "@testable import "]
      where lines[index].hasPrefix(prefix + "Starter") {
        lines[index] = prefix + lines[index].dropFirst((prefix + "Starter").count)
      }
    }
    let imports = lines.indices.filter { lines[$0].hasPrefix("import ") }
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
        // For apps, which build this library alone. With a second product they would fetch Hearth.
        .library(name: "Models", targets: ["Models"])
      ],
      dependencies: [
        \(hearth.declaration)
      ],
      targets: [
        .target(name: "Models"),
        .target(
          name: "Functions",
          dependencies: [
            "Models",
            .product(name: "FirestoreClient", package: "\(hearth.identity)"),
            .product(name: "FunctionsRuntime", package: "\(hearth.identity)"),
          ]
        ),
        .executableTarget(
          name: "functions-worker",
          dependencies: [
            "Functions",
            .product(name: "FirestoreClient", package: "\(hearth.identity)"),
            .product(name: "FunctionsRuntime", package: "\(hearth.identity)"),
          ],
          path: "Sources/Worker"
        ),
        .testTarget(
          name: "FunctionsTests",
          dependencies: [
            "Models",
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
      "firestore": {
        "rules": "firestore.rules"
      },
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
    | `Sources/Models/` | the documents, and the names of callables; apps import it, too |
    | `Sources/Worker/main.swift` | the program that runs the functions |
    | `Tests/FunctionsTests/` | tests of the functions and of the rules, without a server |
    | `firestore.rules` | who may read and write what in an app; all else is denied |
    | `firebase.json`, `.firebaserc` | where the functions are, how they are built, and the project's id |
    | `.vscode/` | tasks, and the functions in the debugger of Visual Studio Code |

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

    Settings go to `.env`. Secrets go to `.secret.local`, which is not committed;
    `hearth functions config set --secret NAME` asks for one.

    ## In the app

    Add this package to the app, with the library `Models`, which builds without Hearth. This
    extension calls a function by its name in `Models`:

    ```swift
    import FirebaseFunctions
    import Models

    extension Functions {
      /// Calls a function with the types that `Models` gives it.
      func call<Payload, Reply>(
        _ callable: CallableName<Payload, Reply>,
        _ payload: Payload
      ) async throws -> Reply {
        try await httpsCallable(callable.name).call(payload)
      }
    }

    let greeting = try await Functions.functions().call(.greeting, GreetingQuery(isLoud: true))
    ```

    """
  }

  private var dependencyText: String {
    switch hearth {
    case .path:
      """
      a folder of this machine: the libraries that `make install` compiled, or a
      checkout. For other machines, and for the image of production, put its
      address there: `.package(url: "https://…/hearth", branch: "main")`.
      """
    case .address:
      """
      its address. While you work on Hearth itself, put the path of a
      checkout there: `.package(name: "hearth", path: "../hearth")`.
      """
    }
  }
}
