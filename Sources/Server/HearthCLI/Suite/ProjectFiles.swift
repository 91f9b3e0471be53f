import Foundation

/// The settings in a Firebase project's `firebase.json` and `.firebaserc` in one folder.
struct ProjectFiles {
  /// The folder that holds the files; their relative paths start here.
  var folder: String
  /// The package with the functions, absolute; nil when `firebase.json` names none.
  var functionsSource: String?
  /// The executable product of that package; nil for its only one.
  var functionsProduct: String?
  /// How that package is built by default; nil when `firebase.json` does not say.
  var functionsConfiguration: FunctionsOptions.BuildConfiguration?
  /// The file of Firestore's indexes, absolute; it need not exist.
  var firestoreIndexes: String
  /// The file of Firestore's security rules, absolute; nil when `firebase.json` names none and there
  /// is no `firestore.rules`.
  var firestoreRules: String?
  /// The file of Cloud Storage's security rules, likewise.
  var storageRules: String?
  /// The default project of `.firebaserc`.
  var defaultProject: String?

  /// Reads the files of a folder; missing files are empty, malformed ones throw a `CommandFailure`.
  init(folder: String) throws {
    self.folder = folder
    firestoreIndexes = Self.absolute("firestore.indexes.json", in: folder)
    if let firebase: FirebaseJSON = try Self.read("firebase.json", in: folder) {
      let functions = firebase.functions?.only
      functionsSource = functions?.source.map { Self.absolute($0, in: folder) }
      if let path = firebase.firestore?.only?.indexes {
        firestoreIndexes = Self.absolute(path, in: folder)
      }
      firestoreRules = firebase.firestore?.only?.rules.map { Self.absolute($0, in: folder) }
      storageRules = firebase.storage?.only?.rules.map { Self.absolute($0, in: folder) }
      functionsProduct = functions?.product
      if let name = functions?.configuration {
        guard let known = FunctionsOptions.BuildConfiguration(rawValue: name) else {
          throw CommandFailure(
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

  private static func existing(_ name: String, in folder: String) -> String? {
    let path = absolute(name, in: folder)
    return FileManager.default.fileExists(atPath: path) ? path : nil
  }

  private static func absolute(_ path: String, in folder: String) -> String {
    path.hasPrefix("/")
      ? path : URL(filePath: folder).appending(path: path).standardizedFileURL.path
  }

  private static func read<File: Decodable>(_ name: String, in folder: String) throws -> File? {
    let path = folder + "/" + name
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    do {
      return try JSONDecoder().decode(File.self, from: Data(contentsOf: URL(filePath: path)))
    } catch DecodingError.dataCorrupted {
      throw CommandFailure("\(path) is not JSON; correct it.")
    } catch DecodingError.typeMismatch(_, let context) {
      let key = context.codingPath.map(\.stringValue).joined(separator: ".")
      let what = key.isEmpty ? "what it holds" : "\"\(key)\""
      throw CommandFailure("\(path): \(what) is of the wrong type; correct it.")
    } catch {
      throw CommandFailure("\(path) cannot be read: \(error.localizedDescription)")
    }
  }

  private struct FirebaseJSON: Decodable {
    var functions: OneOrMany<Functions>?
    var firestore: OneOrMany<Firestore>?
    var storage: OneOrMany<Storage>?
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

  /// `functions` may be one object or a list of code bases, `firestore` one or a list of databases; the
  /// first is served.
  private struct OneOrMany<Part: Decodable>: Decodable {
    var only: Part?

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // Decoding decides which of the two it is; the error of the object says more.
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
