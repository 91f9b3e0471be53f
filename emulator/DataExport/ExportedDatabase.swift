import DocumentModel
import StatusCodes

/// A database in an export, with its import destination.
struct ExportedDatabase {
  /// The database to import into.
  let name: DatabaseName
  let files: [ExportedFile]
  let folder: String
  /// The database that was exported.
  let original: DatabaseName

  /// Creates a database whose destination has the same id in `project`.
  init(_ metadata: DocumentMetadata.Database, folder: String, project: String) throws {
    guard let original = DatabaseName(metadata.name) else {
      throw StatusError.invalidArgument(
        "The metadata in \(folder) name a database \"\(metadata.name)\"; "
          + "it must be like projects/P/databases/(default)."
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

  /// Reads all documents and then checks the files against the metadata.
  func forEach(_ body: (DocumentFileReader, FirestoreDocument) throws -> Void) throws {
    for file in files {
      let reader = try DocumentFileReader(file, of: self)
      while let document = try reader.next() {
        do {
          try body(reader, document)
        } catch let error as StatusError {
          throw reader.lines.invalid(error.statusMessage)
        }
      }
      try reader.lines.check(against: file)
    }
  }
}

/// A reader of the documents in one file of an export.
final class DocumentFileReader {
  let lines: ExportFileReader
  private let database: ExportedDatabase

  /// Creates a reader at the start of the file.
  init(_ file: ExportedFile, of database: ExportedDatabase) throws {
    self.database = database
    lines = try ExportFileReader(
      path: "\(database.folder)/\(file.name)",
      lineBytesMax: DocumentLine.bytesMax
    )
  }

  /// Returns the next document; nil after the last one.
  func next() throws(StatusError) -> FirestoreDocument? {
    guard let line = try lines.next() else { return nil }
    let document: FirestoreDocument
    do {
      document = try DocumentLine.document(line)
    } catch {
      throw lines.invalid(error.statusMessage)
    }
    guard document.name.database == database.original else {
      throw lines.invalid("the document \(document.name) is not in \(database.original)")
    }
    return document.moved(from: database.original.project, to: database.name.project)
  }

  /// Returns the next documents, at least one if there are any left; empty at the end.
  func batch(documentsMax: Int, bytesMax: Int) throws(StatusError) -> [FirestoreDocument] {
    var documents: [FirestoreDocument] = []
    let start = lines.handedOut
    while documents.count < documentsMax, lines.handedOut - start < bytesMax,
      let document = try next()
    {
      documents.append(document)
    }
    return documents
  }
}
