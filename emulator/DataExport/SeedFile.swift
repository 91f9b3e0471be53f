import DocumentModel
import Foundation
import JSONText
import StatusCodes

/// Documents that a person has written into one JSON file.
///
/// ```json
/// {"users/tina": {"name": "Tina", "born": {"$timestamp": "1990-04-01T00:00:00Z"}},
///  "users/tina/notes/n1": {"text": "Hello"}}
/// ```
///
/// A member's name is the path of a document, or that of a collection with its documents by id.
/// Values that JSON lacks have the form of `TaggedJSON`.
struct SeedFile {
  /// The documents in file order; all of them have `time` as create and update time.
  private(set) var documents: [FirestoreDocument] = []

  private let database: DatabaseName
  private let time: Timestamp

  /// The maximum size of a file, which is read as a whole.
  static let bytesMax = 64 << 20

  /// Returns true if a path is that of a file rather than of an export's folder.
  static func isFile(_ path: String) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
      && !isFolder.boolValue
  }

  /// Reads a file; throws `INVALID_ARGUMENT` that names the place of a mistake.
  init(path: String, database: DatabaseName, time: Timestamp) throws {
    let text = try RegularFile.contents(of: path, bytesMax: Self.bytesMax)
    do {
      try self.init(json: text, database: database, time: time)
    } catch let error as StatusError {
      throw StatusError(error.statusCode, "\(path): \(error.statusMessage)")
    }
  }

  /// Reads the text of a file.
  init(json text: [UInt8], database: DatabaseName, time: Timestamp) throws {
    self.database = database
    self.time = time
    let value = try TaggedJSON.parse(text, at: "the file")
    guard case .object(let members) = value else {
      throw StatusError.invalidArgument(
        "the file must be an object with documents by their paths, such as "
          + #"{"users/tina": {"name": "Tina"}}"#
      )
    }
    for (name, value) in members { try read(name, value, below: []) }
    var seen: Set<ResourcePath> = []
    for document in documents where !seen.insert(document.name.path).inserted {
      throw StatusError.invalidArgument("the document \(document.name.path) is there twice")
    }
  }

  /// Reads a document or a collection at a path.
  private mutating func read(_ name: String, _ value: JSONTree, below outer: [String]) throws {
    let path = ResourcePath(outer + ResourcePath(slashSeparated: name).segments)
    let hasFlaw = path.segments.enumerated().contains {
      ResourceID.flaw(of: $1, isCollection: $0.isMultiple(of: 2)) != nil
    }
    guard !name.isEmpty, !hasFlaw else {
      throw StatusError.invalidArgument(
        "\(jsonQuoted(name)) is no path: write one such as users/tina, without a slash at its ends"
      )
    }
    guard case .object(let members) = value else {
      let what = path.isDocument ? "an object of its fields" : "an object of its documents"
      throw StatusError.invalidArgument("\(path) must be \(what), and is \(value.kind)")
    }
    guard path.isDocument else {
      for (id, document) in members { try read(id, document, below: path.segments) }
      return
    }
    let fields = try TaggedJSON.fields(members, at: "\(path)", of: database)
    documents.append(
      FirestoreDocument(
        name: DocumentName(database: database, path: path),
        fields: fields,
        createTime: time,
        updateTime: time
      )
    )
  }
}
