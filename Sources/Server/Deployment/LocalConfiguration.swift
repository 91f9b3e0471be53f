#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

import LibC

/// The variables and secrets of a functions source, for a person to read and change.
///
/// Changes go to `.env.local` and `.secret.local`, which apply only to this machine. A change is
/// atomic and keeps everything else in the file.
package struct LocalConfiguration: Sendable {
  /// A variable or secret and the file that sets it.
  package struct Setting: Sendable, Hashable {
    package var name: String
    package var value: String
    package var source: String
    package var isSecret: Bool
  }

  private let folder: String
  private let project: String

  package init(folder: String, project: String) {
    self.folder = folder
    self.project = project
  }

  /// Returns the variables, then the secrets, each sorted by name.
  ///
  /// Throws `DeploymentError` for a malformed file.
  package func settings() throws -> [Setting] {
    var settings: [String: Setting] = [:]
    for file in UserEnvironment.variableFiles(project: project) {
      for (name, value) in try UserEnvironment.read(file, in: folder) {
        settings[name] = Setting(name: name, value: value, source: file, isSecret: false)
      }
    }
    let file = UserEnvironment.secretFile
    let secrets = try UserEnvironment.read(file, in: folder).map { name, value in
      Setting(name: name, value: value, source: file, isSecret: true)
    }
    return settings.values.sorted { $0.name < $1.name } + secrets.sorted { $0.name < $1.name }
  }

  /// The maximum size of a value: that of a secret in Google's Secret Manager.
  package static let valueBytesMax = 64 << 10

  /// Throws `DeploymentError` for a name that a variable or secret cannot have.
  package static func check(_ name: String) throws { try EnvironmentFile.check(name) }

  /// Sets a variable or secret, and returns the name of the file that contains it.
  ///
  /// Throws `DeploymentError` for an empty secret, for a value that no process can be given, and
  /// for a file that cannot be read or written.
  package func set(_ name: String, to value: String, isSecret: Bool) throws -> String {
    guard !isSecret || value.unicodeScalars.contains(where: { !$0.properties.isWhitespace }) else {
      throw DeploymentError("The secret \(name) is empty; give it a value, or remove it.")
    }
    guard !value.utf8.contains(0) else {
      throw DeploymentError("The value of \(name) has a NUL character, which ends a variable.")
    }
    guard value.utf8.count <= Self.valueBytesMax else {
      throw DeploymentError("The value of \(name) is longer than \(Self.valueBytesMax) bytes.")
    }
    return try change(isSecret: isSecret) { try $0.set(name, value) }
  }

  /// Removes a variable or secret; returns the file's name, or nil if it is not in the file.
  package func unset(_ name: String, isSecret: Bool) throws -> String? {
    var wasThere = false
    let file = try change(isSecret: isSecret) { wasThere = try $0.unset(name) }
    return wasThere ? file : nil
  }

  private func change(
    isSecret: Bool,
    _ body: (inout EnvironmentFile) throws -> Void
  ) throws -> String {
    let name = isSecret ? UserEnvironment.secretFile : UserEnvironment.localFile
    // A symbolic link is preserved: its target is replaced.
    let path = URL(filePath: "\(folder)/\(name)").resolvingSymlinksInPath().path
    let before = try UserEnvironment.text(of: path) ?? ""
    var file = try EnvironmentFile(before, file: path)
    try body(&file)
    // Strings with different accents, composed or not, count as equal.
    if !file.text.utf8.elementsEqual(before.utf8) {
      try write(file.text, to: path, isSecret: isSecret)
    }
    return name
  }

  /// Writes a new file and moves it into place; secrets are readable only by the owner.
  private func write(_ text: String, to path: String, isSecret: Bool) throws {
    var status = stat()
    let mode = isSecret ? 0o600 : stat(path, &status) == 0 ? status.st_mode & 0o777 : 0o644
    let fresh = "\(path).\(getpid()).new"
    let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Self.failure(path) }
    var rest = Array(text.utf8)[...]
    var isWritten = true
    while !rest.isEmpty, isWritten {
      let count = rest.withUnsafeBytes { Self.write(descriptor, $0) }
      if count > 0 { rest = rest.dropFirst(count) } else { isWritten = errno == EINTR }
    }
    isWritten = isWritten && syncToDisk(descriptor) == 0
    let failure = Self.failure(path)
    close(descriptor)
    guard isWritten else {
      unlink(fresh)
      throw failure
    }
    guard rename(fresh, path) == 0 else {
      let failure = Self.failure(path)
      unlink(fresh)
      throw failure
    }
  }

  private static func write(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
    LibC.write(descriptor, bytes.baseAddress, bytes.count)
  }

  private static func failure(_ path: String) -> DeploymentError {
    DeploymentError("\(path) cannot be written: \(String(cString: strerror(errno))).")
  }
}
