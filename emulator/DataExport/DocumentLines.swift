import DocumentModel
import StatusCodes

/// The documents of one database in an export of Hearth, file after file.
///
/// The end of each file is compared with the metadata.
final class DocumentLines: DocumentRecords {
  let makeDecoder: @Sendable () -> ([UInt8]) throws(StatusError) -> FirestoreDocument
  private let folder: String
  private var files: ArraySlice<ExportedFile>
  private var reader: ExportFileReader?
  private(set) var bytesRead = 0

  /// Creates a reader at the first line; documents move to the database's destination.
  init(_ database: ExportedDatabase) {
    folder = database.folder
    files = database.files[...]
    let (original, project) = (database.original, database.name.project)
    makeDecoder = {
      { line throws(StatusError) in
        let document = try DocumentLine.document(line)
        guard document.name.database == original else {
          throw .invalidArgument("the document \(document.name) is not in \(original)")
        }
        return document.moved(from: original.project, to: project)
      }
    }
  }

  func next() throws(StatusError) -> (bytes: [UInt8], place: RecordPlace)? {
    while true {
      guard let reader else {
        guard let file = files.first else { return nil }
        reader = try ExportFileReader(
          path: "\(folder)/\(file.name)",
          lineBytesMax: DocumentLine.bytesMax
        )
        continue
      }
      if let line = try reader.next() {
        bytesRead += line.count + 1
        return (Array(line), reader.place)
      }
      if let file = files.popFirst() { try reader.check(against: file) }
      self.reader = nil
    }
  }
}
