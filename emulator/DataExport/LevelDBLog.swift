import LibC
import StatusCodes

/// The format of the files in exports of Google's tools: a LevelDB log.
///
/// A file consists of blocks of 32 KiB. A record is one fragment or several, none of which crosses
/// a block; each has a header with a masked CRC-32C, its length and its kind. Where less than a
/// header is left in a block, it is filled with zeros. See `doc/log_format.md` of LevelDB.
enum LevelDBLog {
  static let blockBytes = 32 << 10
  static let headerBytes = 7
  /// The maximum size of a record; a document has at most one mebibyte.
  static let recordBytesMax = 16 << 20

  /// The position of a fragment in its record, with LevelDB's numbers.
  enum Fragment: UInt8 {
    case full = 1
    case first, middle, last
  }

  /// Returns the masked checksum of a fragment, which covers its kind and its data.
  static func checksum(_ kind: UInt8, _ data: UnsafeRawBufferPointer) -> UInt32 {
    var checksum = Checksum(.castagnoli)
    withUnsafeBytes(of: kind) { checksum.update($0) }
    checksum.update(data)
    let value = checksum.value
    return ((value >> 15) | (value << 17)) &+ 0xA282_EAD8
  }
}

/// A reader of the records of a LevelDB log that holds one block and one record at a time.
final class LevelDBLogReader {
  let path: String
  /// The position of the last record in the file.
  private(set) var recordOffset = 0
  /// The number of bytes of the file that have been read.
  private(set) var bytesRead = 0
  private let descriptor: CInt
  private var block: [UInt8] = []
  private var position = 0
  private var blockOffset = 0
  /// True between the first and the last fragment of a record.
  private var isInside = false

  /// Opens a file; throws `NOT_FOUND` if it is missing.
  init(path: String) throws(StatusError) {
    self.path = path
    descriptor = try RegularFile.open(path)
  }

  deinit {
    close(descriptor)
  }

  /// The size of the file; 0 if it is unknown.
  var size: Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Returns the next record; nil at the end of the file.
  ///
  /// Throws `INVALID_ARGUMENT` with the file and the offset for a damaged or truncated file.
  func next() throws(StatusError) -> [UInt8]? {
    var record: [UInt8]?
    while true {
      guard let (kind, data) = try fragment() else {
        guard record == nil else { throw damaged("the file ends in the middle of a record") }
        return nil
      }
      switch (kind, record == nil) {
      case (.full, true): return Array(data)
      case (.first, true):
        record = Array(data)
        isInside = true
      case (.middle, false), (.last, false):
        guard (record?.count ?? 0) + data.count <= LevelDBLog.recordBytesMax else {
          throw damaged("the record is longer than \(LevelDBLog.recordBytesMax) bytes")
        }
        record?.append(contentsOf: data)
        if kind == .last {
          isInside = false
          return record
        }
      case (.full, false), (.first, false): throw damaged("the record before has no end")
      case (.middle, true), (.last, true): throw damaged("the record has no beginning")
      }
    }
  }

  /// The place of the last record, for errors.
  var place: RecordPlace { .byte(recordOffset, of: path) }

  /// Returns the error for a problem with the last record.
  func damaged(_ problem: String) -> StatusError { place.damaged(problem) }

  private func fragment() throws(StatusError) -> (LevelDBLog.Fragment, ArraySlice<UInt8>)? {
    while true {
      guard block.count - position >= LevelDBLog.headerBytes else {
        let isTruncated =
          position < block.count && block.count < LevelDBLog.blockBytes
          && block[position...].contains { $0 != 0 }
        if !isInside { recordOffset = blockOffset + position }
        if isTruncated { throw damaged("the file ends in the middle of a record") }
        guard try readBlock() else { return nil }
        continue
      }
      if !isInside { recordOffset = blockOffset + position }
      let header = block[position..<position + LevelDBLog.headerBytes]
      // A writer that reserved its file leaves zeros at the end of a block.
      if header.allSatisfy({ $0 == 0 }) {
        guard block[position...].allSatisfy({ $0 == 0 }) else {
          throw damaged("zeros stand where a record begins, so the file is damaged; export again")
        }
        position = block.count
        continue
      }
      let bytes = Array(header)
      let checksum = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[$1]) << (8 * UInt32($1)) }
      let length = Int(bytes[4]) | Int(bytes[5]) << 8
      guard let kind = LevelDBLog.Fragment(rawValue: bytes[6]) else {
        throw damaged("\(bytes[6]) is not a kind of record, so the file is no export, or damaged")
      }
      let start = position + LevelDBLog.headerBytes
      guard start + length <= block.count else {
        throw damaged(
          block.count < LevelDBLog.blockBytes
            ? "the file ends in the middle of the record" : "the record leaves its block"
        )
      }
      let data = block[start..<start + length]
      let found = data.withUnsafeBytes { LevelDBLog.checksum(bytes[6], $0) }
      guard found == checksum else {
        throw damaged("its checksum differs, so the file is damaged; export again")
      }
      position = start + length
      return (kind, data)
    }
  }

  /// Reads the next block; false at the end of the file.
  ///
  /// Throws `CANCELLED` in a cancelled task.
  private func readBlock() throws(StatusError) -> Bool {
    // A file of zeros has no record at which a caller could look.
    if Task.isCancelled { throw StatusError(.cancelled, "The import was cancelled.") }
    blockOffset += block.count
    var next = [UInt8](repeating: 0, count: LevelDBLog.blockBytes)
    let filled = try RegularFile.fill(&next, from: descriptor, of: path)
    next.removeLast(next.count - filled)
    block = next
    position = 0
    bytesRead += filled
    return filled > 0
  }
}

/// A writer of records to a new LevelDB log.
final class LevelDBLogWriter {
  private let file: ExportFileWriter
  private var position = 0
  /// The number of records written.
  private(set) var records = 0

  /// Creates the file, which must not exist.
  init(path: String) throws(StatusError) {
    file = try ExportFileWriter(path: path)
  }

  /// The size of the file.
  var size: Int { file.size }

  /// Appends a record in as many fragments as its blocks require.
  func append(_ record: [UInt8]) throws(StatusError) {
    var rest = record[...]
    var isFirst = true
    repeat {
      let left = LevelDBLog.blockBytes - position
      if left < LevelDBLog.headerBytes {
        try file.append(bytes: [UInt8](repeating: 0, count: left))
        position = 0
        continue
      }
      let length = min(rest.count, left - LevelDBLog.headerBytes)
      let isLast = length == rest.count
      let kind: LevelDBLog.Fragment =
        isFirst ? (isLast ? .full : .first) : (isLast ? .last : .middle)
      try append(kind, rest.prefix(length))
      rest = rest.dropFirst(length)
      isFirst = false
      if isLast { break }
    } while true
    records += 1
  }

  /// Returns once all data are on disk.
  func finish() throws(StatusError) {
    _ = try file.finish()
  }

  private func append(_ kind: LevelDBLog.Fragment, _ data: ArraySlice<UInt8>) throws(StatusError) {
    let checksum = data.withUnsafeBytes { LevelDBLog.checksum(kind.rawValue, $0) }
    var header = (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt32($0))) }
    header += [UInt8(data.count & 0xFF), UInt8(data.count >> 8), kind.rawValue]
    try file.append(bytes: header)
    try file.append(bytes: data)
    position = (position + header.count + data.count) % LevelDBLog.blockBytes
  }
}
