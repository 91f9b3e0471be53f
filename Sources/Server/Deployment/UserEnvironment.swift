import Invocation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The `.env` files of a functions source, as Firebase's tools read them.
package struct UserEnvironment: Sendable, Hashable {
  /// The variables that every function sees.
  package var variables: [String: String]
  /// The secrets, from `.secret.local`, that only functions which declare them see.
  package var secrets: [String: String]

  /// Reads `.env`, `.env.{project}`, `.env.local` and `.secret.local`; later files win.
  ///
  /// Missing files are empty. Throws `DeploymentError` naming file and line for a malformed line
  /// and for a reserved name.
  package init(folder: String, project: String) throws {
    variables = [:]
    for name in Self.variableFiles(project: project) {
      variables.merge(try Self.read(name, in: folder)) { $1 }
    }
    secrets = try Self.read(Self.secretFile, in: folder)
  }

  /// The secrets that a function declares and that have a value.
  func secrets(of endpoint: FunctionEndpoint) -> [String: String] {
    let declared = Set((endpoint.secretEnvironmentVariables ?? []).map(\.key))
    return secrets.filter { declared.contains($0.key) }
  }

  /// The names of the files that are read.
  package static func files(project: String) -> [String] {
    variableFiles(project: project) + [secretFile]
  }

  /// The file of secrets.
  static let secretFile = ".secret.local"

  /// The files of variables, later ones winning.
  static func variableFiles(project: String) -> [String] {
    [".env", ".env.\(project)", localFile]
  }

  /// The file of variables that is for this machine only.
  static let localFile = ".env.local"

  static func read(_ name: String, in folder: String) throws -> [String: String] {
    let path = folder + "/" + name
    return try text(of: path).map { try parse($0, file: path) } ?? [:]
  }

  /// A file's text; nil when it does not exist.
  static func text(of path: String) throws -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else {
      throw DeploymentError("\(path) is unreadable or not UTF-8.")
    }
    return text
  }

  /// The values of a file's text; throws `DeploymentError` naming file and line.
  static func parse(_ text: String, file: String) throws -> [String: String] {
    try EnvironmentFile(text, file: file).values
  }
}
