import Foundation

/// The settings of a Firebase project in the `firebase.json` and `.firebaserc` of its folder.
struct ProjectFiles {
  /// The folder with the files; relative paths in them start here.
  var folder: String
  /// True if the folder has a `firebase.json` or a `.firebaserc`.
  var exists: Bool
  /// The settings of the emulators.
  var emulators = EmulatorSettings()
  /// The absolute path of the functions package; nil if `firebase.json` does not name one.
  var functionsSource: String?
  /// The executable product of the functions package; nil for its only one.
  var functionsProduct: String?
  /// The default build configuration; nil if `firebase.json` does not set it.
  var functionsConfiguration: FunctionsOptions.BuildConfiguration?
  /// The absolute path of the Firestore indexes file, which need not exist.
  var firestoreIndexes: String
  /// The absolute path of Firestore's security rules.
  ///
  /// Nil if `firebase.json` does not name a file and there is no `firestore.rules`.
  var firestoreRules: String?
  /// The absolute path of Cloud Storage's security rules.
  ///
  /// Nil if `firebase.json` does not name a file and there is no `storage.rules`.
  var storageRules: String?
  /// The default project in `.firebaserc`.
  var defaultProject: String?

  /// Reads the files of the working folder's project; throws `CommandError` for a malformed file.
  ///
  /// The project is that of the nearest folder upward with a `firebase.json`, as for Firebase's
  /// tools. Without one, the working folder is a project without files.
  static func ofWorkingFolder() throws -> ProjectFiles {
    try ProjectFiles(folder: projectFolder(from: FileManager.default.currentDirectoryPath))
  }

  /// Returns the nearest folder upward that has a `firebase.json`; otherwise the folder itself.
  static func projectFolder(from folder: String) -> String {
    var candidate = URL(filePath: folder).standardizedFileURL
    for _ in 0..<Self.parentsMax {
      if existing("firebase.json", in: candidate.path) != nil { return candidate.path }
      let parent = candidate.deletingLastPathComponent()
      guard parent.path != candidate.path else { break }
      candidate = parent
    }
    return folder
  }

  /// The maximum number of folders that are searched for a project.
  private static let parentsMax = 64

  /// Reads the files of a folder; throws `CommandError` for a malformed file.
  ///
  /// A missing file counts as empty.
  init(folder: String) throws {
    self.folder = folder
    exists = ["firebase.json", ".firebaserc"].contains { Self.existing($0, in: folder) != nil }
    firestoreIndexes = Self.absolute("firestore.indexes.json", in: folder)
    if let firebase: FirebaseJSON = try Self.read("firebase.json", in: folder) {
      let functions = firebase.functions?.only
      if let emulators = firebase.emulators {
        try emulators.check(file: folder + "/firebase.json")
        self.emulators = emulators
      }
      functionsSource = functions?.source.map { Self.absolute($0, in: folder) }
      if let path = firebase.firestore?.only?.indexes {
        firestoreIndexes = Self.absolute(path, in: folder)
      }
      firestoreRules = firebase.firestore?.only?.rules.map { Self.absolute($0, in: folder) }
      storageRules = firebase.storage?.only?.rules.map { Self.absolute($0, in: folder) }
      functionsProduct = functions?.product
      if let name = functions?.configuration {
        guard let known = FunctionsOptions.BuildConfiguration(rawValue: name) else {
          throw CommandError(
            "\(folder)/firebase.json: functions.configuration is \"\(name)\"; set debug or release."
          )
        }
        functionsConfiguration = known
      }
    }
    firestoreRules = firestoreRules ?? Self.existing("firestore.rules", in: folder)
    storageRules = storageRules ?? Self.existing("storage.rules", in: folder)
    let firebaserc: FirebaseRC? = try Self.read(".firebaserc", in: folder)
    defaultProject = firebaserc?.projects?["default"]
  }

  /// Returns the absolute path of a file; nil if there is none.
  ///
  /// A link counts even if it leads nowhere, because it is a mistake to be named.
  private static func existing(_ name: String, in folder: String) -> String? {
    let path = absolute(name, in: folder)
    return (try? FileManager.default.attributesOfItem(atPath: path)) == nil ? nil : path
  }

  private static func absolute(_ path: String, in folder: String) -> String {
    path.hasPrefix("/")
      ? path : URL(filePath: folder).appending(path: path).standardizedFileURL.path
  }

  private static func read<File: Decodable>(_ name: String, in folder: String) throws -> File? {
    guard let path = existing(name, in: folder) else { return nil }
    guard FileManager.default.fileExists(atPath: path) else {
      throw CommandError("\(path) is a link to a file that is missing; restore or remove it.")
    }
    do {
      return try JSONDecoder().decode(File.self, from: Data(contentsOf: URL(filePath: path)))
    } catch DecodingError.dataCorrupted {
      // The second reading names the place; it may differ only if the file has changed since.
      let bytes = (try? Data(contentsOf: URL(filePath: path))).map { Array($0) } ?? []
      try JSONInput.check(bytes, name: path, remedy: "Correct it.", code: .failed)
      // Foundation does not say which number its type cannot hold.
      throw CommandError(
        "\(path) has a number that cannot be used, such as a port with a fraction; correct it."
      )
    } catch DecodingError.typeMismatch(_, let context) {
      let key = context.codingPath.map(\.stringValue).joined(separator: ".")
      let what = key.isEmpty ? "what it holds" : "\"\(key)\""
      throw CommandError("\(path): \(what) is of the wrong type; correct it.")
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
  }

  private struct FirebaseJSON: Decodable {
    var functions: OneOrMany<Functions>?
    var firestore: OneOrMany<Firestore>?
    var storage: OneOrMany<Storage>?
    var emulators: EmulatorSettings?
  }

  private struct Firestore: Decodable {
    var indexes: String?
    var rules: String?
  }

  private struct Storage: Decodable {
    var rules: String?
  }

  private struct Functions: Decodable {
    var source: String?
    var product: String?
    var configuration: String?
  }

  /// A setting with one object or a list of objects, of which the first is used.
  ///
  /// `functions` may be a list of codebases, and `firestore` a list of databases.
  private struct OneOrMany<Part: Decodable>: Decodable {
    var only: Part?

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // The type is found by decoding; the error of decoding one object is the more helpful one.
      if let list = try? container.decode([Part].self) {
        only = list.first
      } else {
        only = try container.decode(Part.self)
      }
    }
  }

  private struct FirebaseRC: Decodable {
    var projects: [String: String]?
  }
}
