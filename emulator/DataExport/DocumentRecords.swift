import DocumentModel
import StatusCodes

/// A reader of the records of an export, each of which is an encoded document.
protocol DocumentRecords {
  /// The number of bytes of the export's files that have been read.
  var bytesRead: Int { get }

  /// Creates a decoder for records that are decoded one after the other, on any thread.
  ///
  /// The decoder throws `INVALID_ARGUMENT` with a description of the problem.
  var makeDecoder: @Sendable () -> ([UInt8]) throws(StatusError) -> FirestoreDocument { get }

  /// Returns the next record; nil after the last one.
  ///
  /// Throws `INVALID_ARGUMENT` with the file and the place of a damaged record, and for files that
  /// do not match the export's metadata.
  func next() throws(StatusError) -> (bytes: [UInt8], place: RecordPlace)?
}

/// The place of a record in a file of an export, which errors name.
enum RecordPlace: Sendable {
  case line(Int, of: String)
  case byte(Int, of: String)

  /// Returns the error for a problem with the record.
  func damaged(_ problem: String) -> StatusError {
    let problem = problem.hasSuffix(".") ? problem.dropLast() : problem[...]
    return switch self {
    case .line(let line, let path): .invalidArgument("\(path):\(line): \(problem).")
    case .byte(let byte, let path):
      .invalidArgument("\(path), record at byte \(byte): \(problem).")
    }
  }
}

/// Consecutive records of an export.
struct RecordBatch: Sendable {
  fileprivate(set) var records: [(bytes: [UInt8], place: RecordPlace)] = []
  /// The number of bytes of the export's files up to the end of the batch.
  fileprivate(set) var bytesRead = 0

  /// Returns the decoded documents.
  ///
  /// Throws `INVALID_ARGUMENT` with the file and the place of the first record that is no document,
  /// or for which `check` throws.
  func documents(
    decode: ([UInt8]) throws(StatusError) -> FirestoreDocument,
    check: (FirestoreDocument) throws(StatusError) -> Void
  ) throws(StatusError) -> [FirestoreDocument] {
    var documents: [FirestoreDocument] = []
    documents.reserveCapacity(records.count)
    for (bytes, place) in records {
      do {
        let document = try decode(bytes)
        try check(document)
        documents.append(document)
      } catch {
        throw place.damaged(error.statusMessage)
      }
    }
    return documents
  }
}

/// The records of an export in batches.
final class RecordBatches<Records: DocumentRecords> {
  private let records: Records
  private let recordsMax: Int
  private let bytesMax: Int
  /// The error after the last batch.
  private var failure: StatusError?

  /// Creates batches of at most `recordsMax` records; the record that reaches `bytesMax` ends one.
  init(of records: Records, recordsMax: Int, bytesMax: Int) {
    self.records = records
    self.recordsMax = recordsMax
    self.bytesMax = bytesMax
  }

  /// Returns the next batch; nil after the last one.
  ///
  /// An error of the records is thrown after the batch with all records before it.
  func next() throws(StatusError) -> RecordBatch? {
    if let failure { throw failure }
    var batch = RecordBatch()
    var bytes = 0
    do {
      while batch.records.count < recordsMax, bytes < bytesMax, let record = try records.next() {
        batch.records.append(record)
        bytes += record.bytes.count
      }
    } catch {
      failure = error
      guard !batch.records.isEmpty else { throw error }
    }
    batch.bytesRead = records.bytesRead
    return batch.records.isEmpty ? nil : batch
  }
}
