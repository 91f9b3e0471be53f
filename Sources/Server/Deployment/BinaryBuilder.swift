import JSONText
import Subprocess

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The locator of a functions source's binary, which builds it first if asked.
struct BinaryBuilder: Sendable {
  /// The SwiftPM command.
  var swift: Executable = .name("swift")

  /// Returns the path of the binary; `progress` receives the build's output line by line.
  ///
  /// Throws `DeploymentError` with the compiler's messages if the build fails, or if there is no
  /// binary.
  func binary(
    of source: FunctionsSource,
    builds: Bool,
    progress: @escaping @Sendable (String) -> Void
  ) async throws -> String {
    switch source {
    case .executable(let path, _):
      guard FileManager.default.isExecutableFile(atPath: path) else {
        throw DeploymentError("\(path) is not an executable file.")
      }
      return path
    case .package(let path, let product, let configuration):
      guard FileManager.default.fileExists(atPath: path + "/Package.swift") else {
        throw DeploymentError(
          "\(path) has no Package.swift; correct functions.source in firebase.json."
        )
      }
      let product =
        if let product { product } else { try await onlyExecutable(of: path) }
      if builds {
        try await build(product, path, configuration, progress)
      }
      let folder = try await binaryFolder(path, configuration)
      let binary = "\(folder)/\(product)"
      guard FileManager.default.isExecutableFile(atPath: binary) else {
        throw DeploymentError(
          "There is no built \(product) at \(binary). Deploy without --no-build, or build it with: "
            + "swift build -c \(configuration) --product \(product)"
        )
      }
      return binary
    }
  }

  private func build(
    _ product: String,
    _ path: String,
    _ configuration: String,
    _ progress: @escaping @Sendable (String) -> Void
  ) async throws {
    let result = try await ChildProcess.run(
      swift,
      ["build", "-c", configuration, "--product", product, "--package-path", path],
      onLine: progress
    )
    guard result.succeeded else {
      if result.tail.contains(where: { $0.contains("error: no product named '\(product)'") }) {
        let names = try await executables(of: path).joined(separator: ", ")
        throw DeploymentError(
          "\(path) has no product \(product), which firebase.json names as functions.product; its "
            + "executable products: \(names)."
        )
      }
      // The compiler repeats each error below the source line.
      let errors = result.tail.filter { $0.contains("error:") && !$0.contains("`- error:") }
      let words = errors.isEmpty ? result.tail.suffix(Self.wordsMax) : errors.suffix(Self.wordsMax)
      throw DeploymentError(
        "The build of \(product) failed:\n" + words.joined(separator: "\n")
      )
    }
  }

  private func binaryFolder(_ path: String, _ configuration: String) async throws -> String {
    let result = try await ChildProcess.run(
      swift,
      ["build", "-c", configuration, "--show-bin-path", "--package-path", path]
    )
    guard result.succeeded, let folder = result.output.last(where: { $0.hasPrefix("/") }) else {
      throw DeploymentError(
        "SwiftPM does not say where it builds \(path):\n" + result.tail.joined(separator: "\n")
      )
    }
    return folder
  }

  private func onlyExecutable(of path: String) async throws -> String {
    let names = try await executables(of: path)
    guard names.count == 1, let name = names.first else {
      throw DeploymentError(
        "\(path) has \(names.count) executable products (\(names.joined(separator: ", "))); "
          + "name one as functions.product in firebase.json."
      )
    }
    return name
  }

  /// Returns the names of a package's executable products.
  private func executables(of path: String) async throws -> [String] {
    struct Package: Decodable {
      struct Product: Decodable {
        /// The kind, which SwiftPM writes as an object with one key; its value does not matter.
        struct Kind: Decodable {
          var isExecutable: Bool
          enum CodingKeys: CodingKey { case executable }
          init(from decoder: any Decoder) throws {
            isExecutable = try decoder.container(keyedBy: CodingKeys.self).contains(.executable)
          }
        }
        var name: String
        var type: Kind
      }
      var products: [Product]
    }
    let result = try await ChildProcess.run(
      swift,
      ["package", "--package-path", path, "describe", "--type", "json"]
    )
    let text = result.output.drop { !$0.hasPrefix("{") }.joined(separator: "\n")
    guard result.succeeded,
      // The error below shows what was printed.
      let package = try? Package(decodingJSON: text.utf8)
    else {
      throw DeploymentError(
        "SwiftPM cannot describe \(path):\n"
          + result.tail.suffix(Self.wordsMax).joined(separator: "\n")
      )
    }
    return package.products.filter { $0.type.isExecutable }.map(\.name)
  }

  /// The maximum number of lines of compiler output in an error.
  private static let wordsMax = 40
}
