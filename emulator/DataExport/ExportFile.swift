import StatusCodes
import LibC

/// The metadata of one file of lines.
struct ExportedFile: Codable, Sendable, Hashable {
  /// The name of the file, in the folder of the metadata.
  var name: String
  var records: Int
  var bytes: Int
  /// The CRC-32 in hexadecimal digits.
  var crc32: String
}

/// A writer of lines to a new file, which counts them and computes their checksum.
final class ExportFileWriter {
  /// The size at which the buffer is written to the file.
  private static let bufferBytes = 1 << 18

  private let path: String
  private let descriptor: CInt
  private var buffer: [UInt8] = []
  private var checksum = Checksum()
  private var records = 0
  private var bytes = 0

  /// Creates the file, which must not exist.
  init(path: String) throws(StatusError) {
    self.path = path
    buffer.reserveCapacity(Self.bufferBytes * 2)
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw DiskError.writing(path) }
  }

  deinit {
    close(descriptor)
  }

  /// The size of the file, including the bytes still in the buffer.
  var size: Int { bytes + buffer.count }

  /// Appends one line, which must not contain a line feed.
  func append(line: some Sequence<UInt8>) throws(StatusError) {
    buffer.append(contentsOf: line)
    buffer.append(UInt8(ascii: "\n"))
    records += 1
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  /// Appends bytes of a format without lines.
  func append(bytes: some Sequence<UInt8>) throws(StatusError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  /// Writes the buffer and returns the file's metadata once all data are on disk.
  func finish() throws(StatusError) -> ExportedFile {
    try flush()
    guard syncToDisk(descriptor) == 0 else { throw DiskError.writing(path) }
    return ExportedFile(
      name: path.split(separator: "/").last.map(String.init) ?? path,
      records: records,
      bytes: bytes,
      crc32: checksum.text
    )
  }

  private func flush() throws(StatusError) {
    var written = 0
    while written < buffer.count {
      let count = buffer.withUnsafeBytes { bytes in
        write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw DiskError.writing(path)
      }
      written += count
    }
    buffer.withUnsafeBytes { checksum.update($0) }
    bytes += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }
}

/// A reader of the lines of a file that reads a bounded part at a time.
final class ExportFileReader {
  private static let pieceBytes = 1 << 18

  let path: String
  /// The number of the last line read, counted from 1.
  private(set) var line = 0
  private(set) var bytes = 0
  private var checksum = Checksum()
  private let descriptor: CInt
  private let lineBytesMax: Int
  private var buffer = [UInt8](repeating: 0, count: pieceBytes)
  /// The part of the buffer that was read from the file but not returned yet.
  private var unread = 0..<0
  private var isAtEnd = false

  /// Opens a file; reading a line longer than `lineBytesMax` will throw.
  init(path: String, lineBytesMax: Int) throws(StatusError) {
    self.path = path
    self.lineBytesMax = lineBytesMax
    descriptor = try RegularFile.open(path)
  }

  deinit {
    close(descriptor)
  }

  /// Throws if the file, read to its end, does not match the metadata.
  func check(against expected: ExportedFile) throws(StatusError) {
    func differ(_ what: String, _ found: String, _ expected: String) -> StatusError {
      .invalidArgument(
        "\(path) is damaged: it has \(what) \(found), but the metadata say \(expected)."
      )
    }
    guard line == expected.records else {
      throw differ("a number of lines of", "\(line)", "\(expected.records)")
    }
    guard bytes == expected.bytes else {
      throw differ("a length of", "\(bytes)", "\(expected.bytes)")
    }
    guard checksum.text == expected.crc32 else {
      throw differ("the CRC-32", checksum.text, expected.crc32)
    }
  }

  /// Returns the next line without its line feed; nil after the last line.
  func next() throws(StatusError) -> ArraySlice<UInt8>? {
    var searched = 0
    while true {
      if let end = lineEnd(after: searched) {
        let bytes = buffer[unread.lowerBound..<end]
        unread = end + 1..<unread.upperBound
        line += 1
        return bytes
      }
      searched = unread.count
      guard !isAtEnd else {
        guard !unread.isEmpty else { return nil }
        line += 1
        throw invalid("the file ends in the middle of the line")
      }
      guard searched <= lineBytesMax else {
        line += 1
        throw invalid("the line is longer than \(lineBytesMax) bytes")
      }
      try fill()
    }
  }

  /// Returns the index of the next line feed; the first `searched` unread bytes are skipped.
  private func lineEnd(after searched: Int) -> Int? {
    let start = unread.lowerBound + searched
    return buffer.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress,
        let found = memchr(base + start, CInt(UInt8(ascii: "\n")), unread.upperBound - start)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  /// The place of the last line read, for errors.
  var place: RecordPlace { .line(line, of: path) }

  /// Returns the error for a problem with the last line read.
  func invalid(_ problem: String) -> StatusError { place.damaged(problem) }

  /// Discards the returned bytes and reads more.
  private func fill() throws(StatusError) {
    if unread.lowerBound > 0 {
      buffer.withUnsafeMutableBytes { bytes in
        _ = bytes.baseAddress.map { memmove($0, $0 + unread.lowerBound, unread.count) }
      }
      unread = 0..<unread.count
    }
    if unread.count == buffer.count {
      buffer.append(contentsOf: [UInt8](repeating: 0, count: buffer.count))
    }
    let start = unread.upperBound
    var count = 0
    repeat {
      count = buffer.withUnsafeMutableBytes { bytes in
        read(descriptor, bytes.baseAddress?.advanced(by: start), bytes.count - start)
      }
    } while count < 0 && errno == EINTR
    guard count >= 0 else { throw DiskError.reading(path) }
    buffer.withUnsafeBytes { bytes in
      checksum.update(UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
    }
    unread = unread.lowerBound..<start + count
    bytes += count
    isAtEnd = count == 0
  }
}

/// The errors for failed file system calls.
enum DiskError {
  /// Returns the error, according to `errno`, for a path that could not be written.
  static func writing(_ path: String) -> StatusError {
    let number = errno
    return switch number {
    case ENOSPC, EDQUOT, EFBIG:
      StatusError(
        .resourceExhausted,
        "There is no room to write \(path): \(words(number)). Free some space and try again; what "
          + "was exported before is untouched."
      )
    default:
      StatusError(
        .failedPrecondition,
        "\(path) cannot be written: \(words(number)). Fix its permissions or name another folder."
      )
    }
  }

  /// Returns the error, according to `errno`, for a path that could not be read.
  static func reading(_ path: String) -> StatusError {
    let number = errno
    return StatusError(
      number == ENOENT ? .notFound : .failedPrecondition,
      "\(path) cannot be read: \(words(number))."
    )
  }

  private static func words(_ number: CInt) -> String { String(cString: strerror(number)) }
}
