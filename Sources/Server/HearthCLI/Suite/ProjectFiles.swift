import DatabaseTree
import EmulatorSuite
import Foundation
import Identifiers
import JSONText
import LibC

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
  /// The settings of the Realtime Database in `firebase.json`; nil if it has none.
  private var database: OneOrMany<Database>?
  /// The file `database.rules.json`; nil if there is none.
  private var usualDatabaseRules: String?
  /// The targets in `.firebaserc`: names of resources by project, service and target.
  private var targets: [String: [String: [String: [String]]]] = [:]
  /// True if `firebase.json` has settings of the Realtime Database or of its emulator.
  var hasDatabase: Bool { database != nil || emulators.services[.database] != nil }
  /// The default project in `.firebaserc`.
  var defaultProject: String?
  /// A sentence for each key of `firebase.json` that looks like a misspelled one.
  var misspelledKeys: [String] = []

  /// Reads the files of the working folder's project; throws `CommandError` for a malformed file.
  ///
  /// The project is that of the nearest folder upward with a `firebase.json`, as for Firebase's
  /// tools. Without one, the working folder is a project without files.
  static func ofWorkingFolder() throws -> ProjectFiles {
    try ProjectFiles(folder: projectFolder(from: FileManager.default.currentDirectoryPath))
  }

  /// Returns the nearest folder upward that has a `firebase.json`; otherwise the folder itself.
  ///
  /// Throws `CommandError` if the file is in a parent folder and another user has put it there.
  static func projectFolder(from folder: String) throws -> String {
    var candidate = URL(filePath: folder).standardizedFileURL
    for distance in 0..<Self.parentsMax {
      if let file = existing("firebase.json", in: candidate.path) {
        if distance > 0 { try checkOwner(of: file, for: folder) }
        return candidate.path
      }
      let parent = candidate.deletingLastPathComponent()
      guard parent.path != candidate.path else { break }
      candidate = parent
    }
    return folder
  }

  /// Throws `CommandError` for a file that another user may have put above a folder.
  ///
  /// Anyone can write to `/tmp`, and a `firebase.json` names programs that are built and run. The
  /// owner of the folder is trusted, too, because root works in folders of others in containers.
  private static func checkOwner(of file: String, for folder: String) throws {
    let owner = owner(of: file)
    guard let id = owner?.id, id != 0, id != geteuid(), id != Self.owner(of: folder)?.id else {
      return
    }
    throw CommandError(
      """
      \(file) belongs to \(owner?.name ?? "the user \(id)"), and \(folder) does not, so its \
      settings are not used here. Work in the project's own folder, make the file yours with \
      `chown`, or begin a project here with `hearth init DIR`.
      """
    )
  }

  /// Returns the ID and name of an item's owner; for a link, those of the link's own.
  private static func owner(of path: String) -> (id: uid_t, name: String?)? {
    // An item that has vanished has no owner.
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
      let id = attributes[.ownerAccountID] as? NSNumber
    else { return nil }
    return (id.uint32Value, attributes[.ownerAccountName] as? String)
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
      misspelledKeys = Self.misspelledKeys(in: folder + "/firebase.json")
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
      database = firebase.database
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
    usualDatabaseRules = Self.existing("database.rules.json", in: folder)
    targets = firebaserc?.targets ?? [:]
    defaultProject = firebaserc?.projects?["default"]
    if let defaultProject, !ProjectID.isUsable(defaultProject) {
      throw CommandError(
        "\(folder)/.firebaserc: projects.default is \"\(defaultProject)\"; use letters, digits and "
          + "hyphens."
      )
    }
  }

  /// Returns the paths of the files with the Realtime Database's rules, by instance of a project.
  ///
  /// Throws `CommandError` for settings that name no instance.
  func databaseRules(of project: String) throws(CommandError) -> [String: String] {
    let first = RealtimeDatabase.defaultInstance(of: project)
    guard let database else { return usualDatabaseRules.map { [first: $0] } ?? [:] }
    var files: [String: String] = [:]
    for part in database.parts {
      let instances: [String]
      if !database.isList {
        instances = [first]
      } else if let target = part.target {
        guard let found = targets[project]?["database"]?[target], !found.isEmpty else {
          throw CommandError(
            "\(folder)/firebase.json: the target \(target) of the database is not configured for "
              + "project \(project); add targets.\(project).database.\(target) to .firebaserc."
          )
        }
        instances = found
      } else if let instance = part.instance {
        instances = [instance]
      } else {
        throw CommandError(
          "\(folder)/firebase.json: Must supply either \"target\" or \"instance\" in database config"
        )
      }
      guard let rules = part.rules else { continue }
      for instance in instances { files[instance] = Self.absolute(rules, in: folder) }
    }
    return files
  }

  /// Returns a sentence for each unknown key whose name is close to that of a known one.
  ///
  /// Other unknown keys are those of Firebase's tools, and without effect here.
  private static func misspelledKeys(in file: String) -> [String] {
    // A file that cannot be read has been reported by then.
    guard let data = FileManager.default.contents(atPath: file),
      let root = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
    else { return [] }
    func check(_ value: Any?, _ known: [String], at place: String) -> [String] {
      let objects = value as? [[String: Any]] ?? [value as? [String: Any] ?? [:]]
      return objects.flatMap { $0.keys.sorted() }.filter { !known.contains($0) }.compactMap { key in
        NearestName.of(key, among: known).map { meant in
          "\(file): \(place)\(key) is no setting. Did you mean \(meant)?"
        }
      }
    }
    let emulators = root["emulators"] as? [String: Any] ?? [:]
    let services = SuiteService.allCases.map(\.rawValue)
    return check(root, FirebaseKeys.root, at: "")
      + check(root["functions"], FirebaseKeys.functions, at: "functions.")
      + check(root["firestore"], FirebaseKeys.firestore, at: "firestore.")
      + check(root["database"], FirebaseKeys.database, at: "database.")
      + check(emulators, services + FirebaseKeys.otherEmulators, at: "emulators.")
      + services.flatMap {
        check(emulators[$0], FirebaseKeys.emulator, at: "emulators.\($0).")
      }
  }

  /// The keys of `firebase.json` that Firebase's tools or Hearth know.
  private enum FirebaseKeys {
    static let root = [
      "$schema", "apphosting", "auth", "database", "dataconnect", "emulators", "extensions",
      "firestore", "functions", "hosting", "remoteconfig", "storage",
    ]
    static let functions = [
      "source", "product", "configuration", "codebase", "runtime", "ignore", "predeploy",
      "postdeploy", "prefix", "configDir",
    ]
    static let firestore = [
      "rules", "indexes", "database", "location", "predeploy", "postdeploy", "edition",
    ]
    static let database = ["rules", "instance", "target", "predeploy", "postdeploy"]
    static let emulator = ["host", "port", "enabled", "websocketPort"]
    static let otherEmulators = [
      "apphosting", "dataconnect", "eventarc", "extensions", "hosting", "logging", "pubsub",
      "remoteconfig", "singleProjectMode", "storage",
    ]
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
      let data = try Data(contentsOf: URL(filePath: path))
      // It names the place of a mistake, and knows the mistakes that Foundation lets pass.
      try JSONInput.check(Array(data), name: path, remedy: "Correct it.", code: .failed)
      return try File(decodingJSON: data)
    } catch let error as CommandError {
      throw error
    } catch DecodingError.dataCorrupted {
      // Foundation does not say which number its type cannot hold.
      throw CommandError(
        "\(path) has a number that cannot be used, such as a port with a fraction; correct it."
      )
    } catch DecodingError.typeMismatch(let type, let context) {
      let key = context.codingPath.map(\.stringValue).joined(separator: ".")
      let what = key.isEmpty ? "what it holds" : "\"\(key)\""
      throw CommandError("\(path): \(what) must be \(words(for: type)); correct it.")
    } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
  }

  /// Returns what a value must be in JSON to decode as a type.
  private static func words(for type: any Any.Type) -> String {
    switch type {
    case is Int.Type: "a whole number without quotes"
    case is Bool.Type: "true or false"
    case is String.Type: "a text in quotes"
    default: "an object in braces"
    }
  }

  private struct FirebaseJSON: Decodable {
    var functions: OneOrMany<Functions>?
    var firestore: OneOrMany<Firestore>?
    var storage: OneOrMany<Storage>?
    var database: OneOrMany<Database>?
    var emulators: EmulatorSettings?
  }

  private struct Firestore: Decodable {
    var indexes: String?
    var rules: String?
  }

  private struct Storage: Decodable {
    var rules: String?
  }

  private struct Database: Decodable {
    var rules: String?
    var instance: String?
    var target: String?
  }

  private struct Functions: Decodable {
    var source: String?
    var product: String?
    var configuration: String?
  }

  /// A setting with one object or a list of objects.
  ///
  /// `functions` may be a list of codebases, and `firestore` a list of databases.
  private struct OneOrMany<Part: Decodable>: Decodable {
    var parts: [Part]
    var isList: Bool

    /// The first object, for services that use only one.
    var only: Part? { parts.first }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // The type is found by decoding; the error of decoding one object is the more helpful one.
      if let list = try? container.decode([Part].self) {
        parts = list
        isList = true
      } else {
        parts = [try container.decode(Part.self)]
        isList = false
      }
    }
  }

  private struct FirebaseRC: Decodable {
    var projects: [String: String]?
    var targets: [String: [String: [String: [String]]]]?
  }
}
