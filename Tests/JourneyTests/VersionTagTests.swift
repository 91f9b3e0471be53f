import Foundation
import TestSupport
import Testing

/// A package that depends on a version of Hearth, as on any published package.
@Suite("A package that depends on a version of Hearth", .timeLimit(.minutes(5)))
struct VersionTagTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Runs a tool in a folder until it exits; returns its status and output.
  private func run(_ tool: String, _ arguments: String..., in directory: String) async throws
    -> (status: Int32, output: String)
  {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [tool] + arguments
    process.currentDirectoryURL = URL(filePath: directory)
    process.standardInput = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    return await blocking {
      let printed = output.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return (process.terminationStatus, String(decoding: printed, as: UTF8.self))
    }
  }

  /// Copies the checkout, including uncommitted changes, into a tagged repository.
  private func makeRepository() async throws -> String {
    let checkout = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().path
    // SwiftPM keeps it in such a folder, and the manifest looks.
    let repository = folder.path(".build/checkouts/hearth")
    let script = """
      set -eu
      mkdir -p "$1"
      git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\\0' "$file"
      done | tar -cf - --null -T - | tar -xf - -C "$1"
      cd "$1"
      git init -q -b main
      git add -A
      git -c user.name=Test -c user.email=test@example.com commit -q -m Version
      git tag 1.0.0
      """
    let made = try await run("bash", "-c", script, "make", repository, in: checkout)
    try #require(made.status == 0, "\(made.output)")
    return repository
  }

  @Test("It may use every product, and no build setting of ours stands in its way")
  func everyProduct() async throws {
    let repository = try await makeRepository()
    let dumped = try await run("swift", "package", "dump-package", in: repository)
    let start = try #require(dumped.output.firstIndex(of: "{"), "\(dumped.output)")
    let package = try JSONDecoder().decode(Manifest.self, from: Data(dumped.output[start...].utf8))
    // Only some versions of SwiftPM reject unsafe flags of a dependency, so this checks for them.
    for target in package.targets {
      #expect(!target.settings.contains { $0.kind.unsafeFlags != nil }, "\(target.name)")
    }
    let products = package.products.filter { !$0.type.isPlugin }.map(\.name).sorted()
    #expect(products.contains("FunctionsTesting") && products.contains("hearth"))

    let stranger = try makeStranger(of: repository, products)
    // Plans a build without compiling anything.
    let planned = try await run("swift", "build", "--print-manifest-job-graph", in: stranger)
    #expect(planned.status == 0, "\(planned.output.suffix(2000))")
  }

  /// Creates a package that depends on the version and on all of its products.
  private func makeStranger(of repository: String, _ products: [String]) throws -> String {
    let uses = products.map { ".product(name: \"\($0)\", package: \"hearth\")" }
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription

      let package = Package(
        name: "stranger",
        platforms: [.macOS(.v15)],
        dependencies: [.package(url: "file://\(repository)", exact: "1.0.0")],
        targets: [.target(name: "Stranger", dependencies: [\(uses.joined(separator: ", "))])]
      )
      """
    let stranger = folder.path("stranger")
    try FileManager.default.createDirectory(
      atPath: stranger + "/Sources/Stranger",
      withIntermediateDirectories: true
    )
    try manifest.write(toFile: stranger + "/Package.swift", atomically: true, encoding: .utf8)
    try "".write(
      toFile: stranger + "/Sources/Stranger/Stranger.swift",
      atomically: true,
      encoding: .utf8
    )
    return stranger
  }

  /// The relevant parts of the output of `swift package dump-package`.
  private struct Manifest: Decodable {
    struct Product: Decodable {
      struct Kind: Decodable {
        var isPlugin: Bool
        init(from decoder: any Decoder) throws {
          isPlugin = try decoder.container(keyedBy: Key.self).contains(.plugin)
        }
        private enum Key: String, CodingKey { case plugin }
      }
      var name: String
      var type: Kind
    }
    struct Target: Decodable {
      struct Setting: Decodable {
        struct Kind: Decodable { var unsafeFlags: Flags? }
        struct Flags: Decodable {}
        var kind: Kind
      }
      var name: String
      var settings: [Setting]
    }
    var products: [Product]
    var targets: [Target]
  }
}
