import ArgumentParser
import Foundation
import JSONText

/// `hearth init`: writes a small functions package.
struct Init: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a small package of functions that builds, tests, starts and deploys.",
    discussion: """
      A trigger, a callable, models for an app, security rules, tests of all, firebase.json, \
      settings of an editor and a README, in a folder that is new or empty. The package depends \
      on the libraries that `make install` compiled, else on the checkout that this command was \
      built in; --hearth-path names another checkout, --hearth-url a repository.

        hearth init my-backend
        hearth init my-backend --hearth-path ../hearth
        hearth init my-backend --hearth-url https://git.example.com/hearth
      """
  )

  @Argument(help: ArgumentHelp("The folder to write; made when it is missing.", valueName: "dir"))
  var folder: String

  @Option(help: ArgumentHelp("A checkout of Hearth to depend on.", valueName: "folder"))
  var hearthPath: String?

  @Option(help: ArgumentHelp("A repository of Hearth to depend on.", valueName: "address"))
  var hearthURL: String?

  @Option(help: ArgumentHelp("The branch of --hearth-url.", valueName: "name"))
  var hearthBranch = "main"

  func validate() throws {
    guard !folder.isEmpty else { throw ValidationError("Name a folder, such as my-backend.") }
    guard hearthPath == nil || hearthURL == nil else {
      throw ValidationError("Give --hearth-path or --hearth-url, not both.")
    }
    if let hearthURL, !["://", "@", "/"].contains(where: hearthURL.contains) {
      throw ValidationError(
        "--hearth-url is \"\(hearthURL)\"; give the address of a repository, such as "
          + "https://git.example.com/hearth."
      )
    }
    for (option, text) in [("--hearth-url", hearthURL ?? "-"), ("--hearth-branch", hearthBranch)]
    where text.isEmpty || text.contains(where: { "\"'\\".contains($0) || $0.isWhitespace }) {
      throw ValidationError("\(option) is \"\(text)\"; give one without spaces and quotes.")
    }
  }

  func run() async throws {
    let path = absolutePath(folder)
    let isNew = try isNew(path)
    let starter = StarterFiles(name: try packageName(path, isNew: isNew), hearth: try dependency())
    do {
      for (name, text) in starter.files {
        let file = URL(filePath: path).appending(path: name)
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(),
          withIntermediateDirectories: true
        )
        try text.write(to: file, atomically: true, encoding: .utf8)
      }
    } catch {
      throw CommandError("\(path) cannot be written: \(error.localizedDescription)")
    }
    let names = starter.files.map { "  " + $0.path }.joined(separator: "\n")
    let isCompiled = hearthPath == nil && hearthURL == nil && InstalledLibraries() != nil
    let firstBuild = isCompiled ? "half a minute" : "minutes"
    let isHere = path == FileManager.default.currentDirectoryPath
    Terminal.print(
      """
      Wrote \(starter.files.count) files to \(path):
      \(names)

      The package is \(starter.name), the project \(starter.project).

      Next:
      \(isHere ? "" : "  cd \(folder.shellWord)\n")\
        swift test               the first build takes \(firstBuild), later ones seconds
        hearth start --watch     the functions beside their emulators
        hearth fire welcome --document users/tina --data '{"name": "Tina"}'
                                 from a second terminal: one event for the trigger

      README.md says what is where, and how an app calls the functions.
      """
    )
    noteProject(around: path)
  }

  /// Says what to do if a parent folder has a project, which the new one hides.
  private func noteProject(around path: String) {
    let parent = URL(filePath: path).deletingLastPathComponent().path
    // A project that may not be used does not matter here.
    guard let outer = try? ProjectFiles.projectFolder(from: parent) else { return }
    let file = outer + (outer.hasSuffix("/") ? "" : "/") + "firebase.json"
    guard FileManager.default.fileExists(atPath: file) else { return }
    let source = path.dropFirst(outer.count).drop { $0 == "/" }
    Terminal.note(
      """

      \(file) is there already, but below \(path) its own firebase.json counts. To have
      one project, write "functions": {"source": \(jsonQuoted(String(source)))} in the former and \
      remove the latter.
      """
    )
  }

  /// Returns the package's name: that of the folder, or one like it for a folder that is there.
  private func packageName(_ path: String, isNew: Bool) throws -> String {
    let last = URL(filePath: path).lastPathComponent
    let name = StarterFiles.name(from: last)
    // The name of an existing folder may have been chosen for other reasons.
    guard isNew, !StarterFiles.isName(last) else { return name }
    let parent = folder.hasSuffix(last) ? String(folder.dropLast(last.count)) : ""
    throw CommandError(
      """
      "\(last)" cannot be the name of a package: use \(StarterFiles.nameRule).
      Try: hearth init \((parent + name).shellWord)
      """,
      .usage
    )
  }

  private func dependency() throws -> StarterFiles.Dependency {
    if let hearthURL { return .address(hearthURL, branch: hearthBranch) }
    if let hearthPath {
      let path = absolutePath(hearthPath)
      guard Self.isCheckout(path) else {
        throw CommandError("\(path) is not a checkout of Hearth: no Package.swift there says so.")
      }
      return .path(path)
    }
    guard let path = InstalledLibraries()?.folder ?? Self.checkoutOfThisBinary() else {
      throw CommandError(
        "Say where Hearth is, with --hearth-path FOLDER or --hearth-url ADDRESS: the folder that "
          + "this command was built in is not here."
      )
    }
    return .path(path)
  }

  /// Returns true if the folder has to be made; throws if it holds anything of its own.
  private func isNew(_ path: String) throws -> Bool {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return true }
    guard isFolder.boolValue else { throw CommandError("\(path) is a file, not a folder.") }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: path)
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
    let own = names.filter { ![".git", ".DS_Store"].contains($0) }.sorted()
    guard !own.isEmpty else { return false }
    let shown = own.prefix(3).joined(separator: ", ") + (own.count > 3 ? ", …" : "")
    let inside = ((folder.hasSuffix("/") ? folder : folder + "/") + "functions").shellWord
    throw CommandError(
      """
      \(path) is not empty (it has \(shown)); name a folder that is new or empty.
      Try: hearth init \(inside)
      """
    )
  }

  /// Returns the checkout that contains the running binary, or that it was installed from.
  private static func checkoutOfThisBinary() -> String? {
    guard var folder = Bundle.main.executableURL?.resolvingSymlinksInPath() else { return nil }
    // `make install` writes the path beside the binary; the file is missing if it was not
    // installed.
    let note = folder.deletingLastPathComponent().appending(path: "../share/hearth/checkout")
    if let path = try? String(contentsOf: note, encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines), isCheckout(path)
    {
      return path
    }
    for _ in 0..<foldersAboveMax {
      folder.deleteLastPathComponent()
      if isCheckout(folder.path) { return folder.path }
    }
    return nil
  }

  private static func isCheckout(_ path: String) -> Bool {
    // A package that depends on Hearth may have the same name, but only a checkout has the library.
    FileManager.default.fileExists(atPath: path + "/Sources/Author/FunctionsRuntime")
      && FileManager.default.fileExists(atPath: path + "/Package.swift")
  }

  /// The maximum number of parent folders to check for a checkout.
  ///
  /// The usual path is `CHECKOUT/.build/x86_64-unknown-linux-gnu/release/hearth`; one level is
  /// spare.
  private static let foldersAboveMax = 5
}
