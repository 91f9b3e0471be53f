import Foundation
import JSONText
import StatusCodes

/// The metadata of an export's folder; none of its data are read yet.
struct ExportSource: Sendable {
  var documents: Documents?
  /// The documents of an export by Google's tools.
  var official: OfficialExport?
  /// The users of an export, which are read when they are checked.
  var accounts: AccountFile?
  /// The trees of the Realtime Database, which are read when they are checked.
  var database: DatabaseFiles?
  var vectors: Vectors?
  /// The names of the parts that belong to emulators which Hearth does not have, sorted.
  var skippedParts: [String] = []

  /// The documents of an export.
  struct Documents: Sendable {
    var folder: String
    var metadata: DocumentMetadata
  }

  /// The vectors of an export.
  struct Vectors: Sendable {
    var folder: String
    var metadata: VectorMetadata
  }

  /// Reads the metadata of a folder that contains an export of all data or of one service.
  ///
  /// Throws `NOT_FOUND` if there is no export, `INVALID_ARGUMENT` for invalid metadata, and
  /// `UNIMPLEMENTED` for unknown versions and formats.
  init(path: String) throws {
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if exists, !isFolder.boolValue, Self.isMetadataFile(path) {
      try add(metadataFile: path)
      return
    }
    try ExportDestination.restore(path)
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue
    else { throw StatusError(.notFound, "There is no file or folder \(path) to import.") }
    let whole = "\(path)/\(ExportMetadata.fileName)"
    guard FileManager.default.fileExists(atPath: whole) else {
      try add(metadataFile: try Self.soleMetadataFile(in: path))
      return
    }
    let metadata: ExportMetadata = try Self.read(whole)
    skippedParts = (try Self.read(whole) as ExportMetadata.Names).unknown
    for part in [metadata.firestore, metadata.vectors].compactMap(\.self) {
      try Self.checkInside(part.metadataFile, whole)
      let file = "\(path)/\(part.metadataFile)"
      try RegularFile.check(file, isIn: path)
      guard FileManager.default.fileExists(atPath: file) else {
        throw StatusError(.notFound, "\(file) is missing; copy the whole folder.")
      }
      try add(metadataFile: file)
    }
    if let auth = metadata.auth {
      try Self.checkInside(auth.path, whole)
      let folder = "\(path)/\(auth.path)"
      for name in AccountFile.names { try RegularFile.check("\(folder)/\(name)", isIn: path) }
      accounts = try AccountFile(folder: folder)
    }
    if let part = metadata.database {
      try Self.checkInside(part.path, whole)
      database = try DatabaseFiles(folder: "\(path)/\(part.path)", isIn: path)
    }
    let isEmpty = documents == nil && official == nil && vectors == nil && accounts == nil
    guard !isEmpty || database != nil else {
      let others = skippedParts.isEmpty ? "" : ", only \(skippedParts.joined(separator: ", "))"
      throw StatusError(
        .notFound,
        "\(path) has no documents, users, Realtime Databases or vectors\(others)."
      )
    }
  }

  /// Returns true if a path is that of the metadata of one service, as Google's tools name it.
  static func isMetadataFile(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    return name.hasSuffix(DocumentMetadata.suffix) || name == DocumentMetadata.suffix.dropFirst()
  }

  private mutating func add(metadataFile path: String) throws {
    struct Head: Decodable {
      var format: String
      var version: Int
    }
    if OfficialExport.isMetadata(path) {
      official = try OfficialExport(metadataFile: path)
      return
    }
    let folder = URL(filePath: path).deletingLastPathComponent().path
    let head: Head = try Self.read(path)
    switch (head.format, head.version) {
    case (DocumentMetadata.format, DocumentMetadata.currentVersion):
      let metadata: DocumentMetadata = try Self.read(path)
      try Self.check(metadata.databases.flatMap(\.files), in: path)
      documents = Documents(folder: folder, metadata: metadata)
    case (VectorMetadata.format, 1...VectorMetadata.currentVersion):
      let metadata: VectorMetadata = try Self.read(path)
      try Self.check(metadata.files, in: path)
      vectors = Vectors(folder: folder, metadata: metadata)
    default:
      throw StatusError(
        .unimplemented,
        "\(path): \(head.format) of version \(head.version) is unknown here; a newer Hearth may "
          + "read it."
      )
    }
  }

  private static func checkInside(_ path: String, _ file: String) throws(StatusError) {
    guard !path.hasPrefix("/"), !path.split(separator: "/").contains("..") else {
      throw .invalidArgument("\(file): \(path) leads out of the folder.")
    }
  }

  private static func soleMetadataFile(in path: String) throws -> String {
    // The error below concerns a folder that cannot be listed, too.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    let found = names.filter { isMetadataFile($0) }
    guard found.count == 1, let name = found.first else {
      throw StatusError(
        .notFound,
        "\(path) is not an export: it has no \(ExportMetadata.fileName) and no metadata of a "
          + "service."
      )
    }
    return "\(path)/\(name)"
  }

  /// Throws unless all files are in the folder of their metadata.
  private static func check(_ files: [ExportedFile], in path: String) throws {
    for file in files where file.name.isEmpty || file.name.contains("/") || file.name == ".." {
      throw StatusError.invalidArgument(
        "\(path): \"\(file.name)\" is not a file beside the metadata."
      )
    }
  }

  private static func read<Metadata: Decodable>(_ path: String) throws -> Metadata {
    let text = try RegularFile.contents(of: path, bytesMax: metadataBytesMax)
    do {
      return try Metadata(decodingJSON: text)
    } catch {
      // What is not even JSON is reported with its place.
      _ = try TaggedJSON.parse(text, at: path)
      throw StatusError.invalidArgument(
        "\(path) is JSON, but not the metadata of an export; copy the whole folder again."
      )
    }
  }

  /// The maximum size of a metadata file.
  ///
  /// Metadata for a million files of 256 MB each are still smaller.
  private static let metadataBytesMax = 256 << 20
}
