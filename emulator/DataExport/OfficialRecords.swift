import DocumentModel
import StatusCodes

/// The documents of an official export, file after file.
final class OfficialRecords: DocumentRecords {
  let makeDecoder: @Sendable () -> ([UInt8]) throws(StatusError) -> FirestoreDocument
  private let export: OfficialExport
  private var files: ArraySlice<String>
  private var log: LevelDBLogReader?
  private var bytesBefore = 0
  private var count = 0

  /// Creates a reader at the first record; documents move to `project` and get `time` as times.
  init(_ export: OfficialExport, project: String, time: Timestamp) {
    self.export = export
    files = export.files[...]
    makeDecoder = {
      let reader = EntityReader()
      return { record throws(StatusError) in
        let document = try reader.document(record, time: time)
        return document.moved(from: document.name.database.project, to: project)
      }
    }
  }

  var bytesRead: Int { bytesBefore + (log?.bytesRead ?? 0) }

  func next() throws(StatusError) -> (bytes: [UInt8], place: RecordPlace)? {
    while true {
      guard let log else {
        guard let file = files.popFirst() else {
          try export.check(documents: count)
          return nil
        }
        self.log = try LevelDBLogReader(path: file)
        continue
      }
      if let record = try log.next() {
        count += 1
        return (record, log.place)
      }
      bytesBefore += log.bytesRead
      self.log = nil
    }
  }
}
