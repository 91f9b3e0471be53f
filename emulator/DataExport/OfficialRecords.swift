import DocumentModel
import StatusCodes

/// A reader of the records of an official export, file after file.
final class OfficialRecords {
  /// Consecutive records of an export.
  struct Batch: Sendable {
    fileprivate(set) var records: [(bytes: [UInt8], place: LevelDBLog.Place)] = []
    /// The number of bytes of all files up to the end of the batch.
    fileprivate(set) var bytesRead = 0
  }

  private var files: ArraySlice<String>
  private var log: LevelDBLogReader?
  private var bytesBefore = 0
  /// The error of the record after the last batch.
  private var failure: StatusError?

  /// Creates a reader at the first record.
  init(_ export: OfficialExport) {
    files = export.files[...]
  }

  /// Returns the next records, at most `recordsMax`; nil after the last one.
  ///
  /// The batch ends with the record that reaches `bytesMax`. Throws `INVALID_ARGUMENT` with the
  /// file and the position of a damaged record.
  func batch(recordsMax: Int, bytesMax: Int) throws(StatusError) -> Batch? {
    if let failure { throw failure }
    var batch = Batch()
    var bytes = 0
    do {
      while batch.records.count < recordsMax, bytes < bytesMax, let (record, place) = try next() {
        batch.records.append((record, place))
        bytes += record.count
      }
    } catch {
      guard !batch.records.isEmpty else { throw error }
      failure = error
    }
    batch.bytesRead = bytesBefore + (log?.bytesRead ?? 0)
    return batch.records.isEmpty ? nil : batch
  }

  private func next() throws(StatusError) -> (record: [UInt8], place: LevelDBLog.Place)? {
    while true {
      guard let log else {
        guard let file = files.popFirst() else { return nil }
        self.log = try LevelDBLogReader(path: file)
        continue
      }
      if let record = try log.next() { return (record, log.place) }
      bytesBefore += log.bytesRead
      self.log = nil
    }
  }
}

extension OfficialRecords.Batch {
  /// Returns the documents of the records, moved to `project`, with `time` as their times.
  ///
  /// Throws `INVALID_ARGUMENT` with the file and the position of the first record that is no
  /// document, or for which `check` throws.
  func documents(
    project: String,
    time: Timestamp,
    check: (FirestoreDocument) throws(StatusError) -> Void
  ) throws(StatusError) -> [FirestoreDocument] {
    let reader = EntityReader()
    var documents: [FirestoreDocument] = []
    documents.reserveCapacity(records.count)
    for (record, place) in records {
      do {
        let document = try reader.document(record, time: time)
        let moved = document.moved(from: document.name.database.project, to: project)
        try check(moved)
        documents.append(moved)
      } catch {
        throw place.damaged(error.statusMessage)
      }
    }
    return documents
  }
}
