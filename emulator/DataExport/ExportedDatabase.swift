import DocumentModel
import StatusCodes

/// A database in an export, with its import destination.
struct ExportedDatabase {
  /// The database to import into.
  let name: DatabaseName
  let files: [ExportedFile]
  /// The folder of the files.
  let folder: String
  /// The database that was exported.
  let original: DatabaseName

  /// The size of all files in bytes, as the metadata say.
  var bytes: Int { files.reduce(0) { $0 + $1.bytes } }

  /// Creates a database whose destination has the same id in `project`.
  init(_ metadata: DocumentMetadata.Database, folder: String, project: String) throws {
    guard let original = DatabaseName(metadata.name) else {
      throw StatusError.invalidArgument(
        "The metadata in \(folder) name a database \"\(metadata.name)\"; "
          + "it must be like projects/P/databases/(default)."
      )
    }
    for file in metadata.files
    where !Self.countRange.contains(file.records) || !Self.countRange.contains(file.bytes) {
      throw StatusError.invalidArgument(
        "The metadata in \(folder) say that \(file.name) has \(file.records) lines and "
          + "\(file.bytes) bytes, which cannot be; copy the whole folder again."
      )
    }
    guard metadata.documents == metadata.files.reduce(0, { $0 + $1.records }) else {
      throw StatusError.invalidArgument(
        "The metadata in \(folder) count \(metadata.documents) documents of \(original), "
          + "but not as many lines in its files."
      )
    }
    self.original = original
    name = DatabaseName(project: project, database: original.database)
    files = metadata.files
    self.folder = folder
  }

  /// The possible numbers of lines and of bytes of a file; their sums do not overflow.
  private static let countRange = 0...(1 << 40)
}
