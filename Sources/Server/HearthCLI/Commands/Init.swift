import ArgumentParser
import Foundation

/// `hearth init`: writes a small functions package.
struct Init: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a small package of functions that builds, tests, starts and deploys.",
    discussion: """
      A trigger, a callable, a test of both, firebase.json and a README, in a folder that is new \
      or empty. The package depends on Hearth by the path of the checkout that this command was \
      built or installed from, by --hearth-path, or by --hearth-url.

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
    guard hearthPath == nil || hearthURL == nil else {
      throw ValidationError("Give --hearth-path or --hearth-url, not both.")
    }
  }

  func run() async throws {
    let path = absolutePath(folder)
    let starter = StarterFiles(
      name: StarterFiles.name(from: URL(filePath: path).lastPathComponent),
      hearth: try dependency()
    )
    try checkEmpty(path)
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
    Terminal.print(
      """
      Wrote \(starter.files.count) files to \(path):
      \(names)

      Next:
        cd \(folder)
        swift test               the first build takes minutes, later ones seconds
        hearth start --watch     the functions beside their emulators
      """
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
    guard let path = Self.checkoutOfThisBinary() else {
      throw CommandError(
        "Say where Hearth is, with --hearth-path FOLDER or --hearth-url ADDRESS: the folder that "
          + "this command was built in is not here."
      )
    }
    return .path(path)
  }

  private func checkEmpty(_ path: String) throws {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return }
    guard isFolder.boolValue else { throw CommandError("\(path) is a file, not a folder.") }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: path)
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
    guard names.allSatisfy({ $0 == ".git" }) else {
      throw CommandError("\(path) is not empty; name a folder that is new or empty.")
    }
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
