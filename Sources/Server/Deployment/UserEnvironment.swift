import Manifests

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The `.env` files of a functions source, read in the same way as by Firebase's tools.
package struct UserEnvironment: Sendable, Hashable {
  /// The variables for every function.
  package var variables: [String: String]
  /// The secrets from `.secret.local`; a function receives only those that it declares.
  package var secrets: [String: String]

  /// Reads `.env`, `.env.{project}`, `.env.local` and `.secret.local`; later files win.
  ///
  /// A missing file counts as empty. Throws `DeploymentError` with file and line for a malformed
  /// line or a reserved name.
  package init(folder: String, project: String) throws {
    variables = [:]
    for name in Self.variableFiles(project: project) {
      variables.merge(try Self.read(name, in: folder)) { $1 }
    }
    secrets = try Self.read(Self.secretFile, in: folder)
  }

  /// Returns the secrets that a function declares and that have a value.
  func secrets(of endpoint: FunctionEndpoint) -> [String: String] {
    let declared = Set((endpoint.secretEnvironmentVariables ?? []).map(\.key))
    return secrets.filter { declared.contains($0.key) }
  }

  /// Returns the names of the files that are read.
  package static func files(project: String) -> [String] {
    variableFiles(project: project) + [secretFile]
  }

  /// The name of the file with secrets.
  static let secretFile = ".secret.local"

  /// Returns the names of the files with variables; later ones take precedence.
  static func variableFiles(project: String) -> [String] {
    [".env", ".env.\(project)", localFile]
  }

  /// The name of the file with variables that apply only to this machine.
  static let localFile = ".env.local"

  /// Returns the variables that apply on every machine: those of `.env` and `.env.{project}`.
  static func shared(folder: String, project: String) throws -> [String: String] {
    try variableFiles(project: project).filter { $0 != localFile }.reduce(into: [:]) {
      $0.merge(try read($1, in: folder)) { $1 }
    }
  }

  static func read(_ name: String, in folder: String) throws -> [String: String] {
    let path = folder + "/" + name
    return try text(of: path).map { try parse($0, file: path) } ?? [:]
  }

  /// Returns a file's text; nil if it does not exist.
  static func text(of path: String) throws -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    // Foundation's own decoding would drop a byte order mark.
    guard let data = try? Data(contentsOf: URL(filePath: path)),
      let text = String(validating: data, as: UTF8.self)
    else {
      throw DeploymentError("\(path) is unreadable or not UTF-8.")
    }
    return text
  }

  /// Parses a file's text; throws `DeploymentError` with file and line.
  static func parse(_ text: String, file: String) throws -> [String: String] {
    try EnvironmentFile(text, file: file).values
  }
}
