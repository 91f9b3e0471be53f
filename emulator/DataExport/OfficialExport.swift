import DocumentModel
import Foundation
import LibC
import StatusCodes

/// The documents of an export by the official emulator or by `gcloud firestore export`.
///
/// The overall metadata, a LevelDB log, name the metadata of the kinds, plain messages, which name
/// the files with the documents. The documents may be of several databases.
struct OfficialExport: Sendable {
  /// The absolute paths of the files with the documents.
  var files: [String]
  /// The total size of the files.
  var bytes: Int
  /// The path of the overall metadata.
  var metadataFile: String
  /// The number of documents that the metadata promise; nil if a part of them names none.
  ///
  /// A LevelDB log that was cut between two records is a valid log, so only this number tells.
  var documents: Int? = 0

  private var named: Set<String> = []
  private static let metadataBytesMax = 64 << 20
  /// The maximum number of documents of a part, so that sums of hostile numbers do not overflow.
  private static let documentsMax: UInt64 = 1 << 40
  /// The first record of overall metadata: the version of the format.
  static let version: [UInt8] = Array("3".utf8)

  /// Reads the metadata at a path; throws `INVALID_ARGUMENT` or `NOT_FOUND` naming the file.
  init(metadataFile path: String) throws {
    files = []
    bytes = 0
    metadataFile = path
    let folder = URL(filePath: path).deletingLastPathComponent().path
    let overall = try LevelDBLogReader(path: path)
    guard overall.size <= Self.metadataBytesMax else {
      throw StatusError.invalidArgument(
        "\(path) has more than \(Self.metadataBytesMax >> 20) MiB, which no metadata have."
      )
    }
    guard let version = try overall.next(), version == Self.version else {
      throw StatusError(
        .unimplemented,
        "\(path) is no metadata of an export of version 3, which is known here; export again with "
          + "current tools."
      )
    }
    var hasParts = false
    while let record = try overall.next() {
      hasParts = true
      documents = try Self.sum(documents, Self.documents(in: record[...], of: path), in: path)
      for kind in try Self.paths(in: record[...], message: 1, path: 2, of: path) {
        try Task.checkCancellation()
        try Self.checkInside(kind, path)
        try add(kindMetadataFile: try claim("\(folder)/\(kind)", of: path, in: folder), in: folder)
      }
    }
    // The official emulator writes an empty second record for an empty database.
    guard hasParts else {
      throw StatusError.invalidArgument(
        "\(path) ends after the version of its format; copy the whole folder again."
      )
    }
  }

  /// Returns the documents that the parts of a record promise; nil if one names no plain number.
  private static func documents(
    in record: ArraySlice<UInt8>,
    of file: String
  ) throws(StatusError) -> Int? {
    var sum: Int? = 0
    do {
      var fields = WireFields(record)
      while let (number, value) = try fields.next() {
        guard number == 1, case .bytes(let part) = value else { continue }
        var count: Int?
        var members = WireFields(part)
        while let (number, value) = try members.next() {
          if number == 3, case .number(let bits) = value, bits <= documentsMax { count = Int(bits) }
        }
        guard let count else { return nil }
        sum = try self.sum(sum, count, in: file)
      }
    } catch {
      throw .invalidArgument("\(file) holds no metadata of an export: \(error.statusMessage).")
    }
    return sum
  }

  /// Returns the sum of two numbers of documents; nil if one is unknown.
  private static func sum(
    _ first: Int?,
    _ second: Int?,
    in file: String
  ) throws(StatusError) -> Int? {
    guard let first, let second else { return nil }
    guard UInt64(first) + UInt64(second) <= documentsMax else {
      throw .invalidArgument("\(file) promises more documents than any database has.")
    }
    return first + second
  }

  /// Notes a file that metadata name, and returns its path in the usual form.
  ///
  /// Throws for a file that was named before or that lies outside the folder because of a link.
  private mutating func claim(
    _ path: String,
    of metadata: String,
    in folder: String
  ) throws(StatusError) -> String {
    let file = URL(filePath: path).standardizedFileURL.path
    guard named.insert(file).inserted else {
      throw .invalidArgument("\(metadata) names \(file) twice.")
    }
    try RegularFile.check(file, isIn: folder)
    return file
  }

  /// Throws if the files had another number of documents than the metadata promise.
  func check(documents found: Int) throws(StatusError) {
    guard let documents, documents != found else { return }
    throw .invalidArgument(
      "\(metadataFile) promises \(documents) documents, but its files have \(found); a file was cut "
        + "or emptied; copy the whole folder again."
    )
  }

  /// Returns true if a file of metadata has Google's format rather than Hearth's, which is JSON.
  static func isMetadata(_ path: String) -> Bool {
    // What cannot be read is reported when it is read as Hearth's.
    guard let descriptor = try? RegularFile.open(path) else { return false }
    defer { close(descriptor) }
    var start = [UInt8](repeating: 0, count: 64)
    start.removeLast(start.count - max(0, read(descriptor, &start, start.count)))
    return start.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } != UInt8(ascii: "{")
  }

  private mutating func add(kindMetadataFile path: String, in root: String) throws {
    guard Self.size(ofFile: path) != nil else {
      throw StatusError(
        .notFound,
        "\(path), which the export's metadata name, is missing; copy the whole folder."
      )
    }
    let bytes = try RegularFile.contents(of: path, bytesMax: Self.metadataBytesMax)
    let folder = URL(filePath: path).deletingLastPathComponent().path
    for name in try Self.paths(in: bytes[...], message: 2, path: 2, of: path) {
      try Task.checkCancellation()
      try Self.checkInside(name, path)
      let file = try claim("\(folder)/\(name)", of: path, in: root)
      guard let size = Self.size(ofFile: file) else {
        throw StatusError(
          .notFound,
          "\(file), which the export's metadata name, is missing; copy the whole folder."
        )
      }
      files.append(file)
      self.bytes += size
    }
  }

  /// Returns the size of a file; nil for a link, a device and what does not exist.
  private static func size(ofFile path: String) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    guard attributes?[.type] as? FileAttributeType == .typeRegular else { return nil }
    return attributes?[.size] as? Int
  }

  private static func checkInside(_ path: String, _ file: String) throws(StatusError) {
    guard !path.isEmpty, !path.hasPrefix("/"), !path.split(separator: "/").contains("..") else {
      throw .invalidArgument("\(file): \(path) leads out of the folder.")
    }
  }

  /// Returns a text member of each message of a repeated field.
  private static func paths(
    in bytes: ArraySlice<UInt8>,
    message: Int,
    path: Int,
    of file: String
  ) throws(StatusError) -> [String] {
    var found: [String] = []
    do {
      var fields = WireFields(bytes)
      while let (number, value) = try fields.next() {
        guard number == message, case .bytes(let inner) = value else { continue }
        var members = WireFields(inner)
        while let (number, value) = try members.next() {
          guard number == path, case .bytes(let text) = value else { continue }
          found.append(String(decoding: text, as: UTF8.self))
        }
      }
    } catch {
      throw .invalidArgument("\(file) holds no metadata of an export: \(error.statusMessage).")
    }
    return found
  }
}

/// A writer of documents in the form of the official emulator's exports.
final class OfficialExportWriter {
  /// The path of the kinds' folder below the export's, and the name of its metadata.
  private static let kinds = "all_namespaces/all_kinds"
  private static let kindsMetadata = "all_namespaces_all_kinds.export_metadata"

  private let folder: String
  private let name: String
  private let fileBytesMax: Int
  private var writer: LevelDBLogWriter?
  private var files: [String] = []
  private var documents = 0
  private var bytes = 0

  /// Creates a writer to an existing folder, whose export gets `name`.
  init(folder: String, name: String, fileBytesMax: Int) throws {
    self.folder = folder
    self.name = name
    self.fileBytesMax = fileBytesMax
    try FileManager.default.createDirectory(
      atPath: "\(folder)/\(Self.kinds)",
      withIntermediateDirectories: true
    )
  }

  /// The folders below an export's folder, inner ones first.
  static func folders(in folder: String) -> [String] {
    ["\(folder)/all_namespaces/all_kinds", "\(folder)/all_namespaces"]
  }

  func append(_ document: FirestoreDocument) throws {
    if let full = writer, full.size >= fileBytesMax { try end(full) }
    let writer = try self.writer ?? begin()
    try writer.append(EntityRecord.bytes(document))
    documents += 1
  }

  /// Ends the files, writes the metadata and returns the number of documents.
  ///
  /// `start` and `end` are the times of the export.
  func finish(from start: Timestamp, to end: Timestamp) throws -> Int {
    try self.end(try writer ?? begin())
    var kind = WireWriter()
    var times = WireWriter()
    times.bytes(1, Array(name.utf8))
    times.number(2, UInt64(bitPattern: start.microseconds))
    times.number(3, UInt64(bitPattern: end.microseconds))
    kind.bytes(1, times.bytes)
    for file in files {
      var output = WireWriter()
      output.bytes(1, [])
      output.bytes(2, Array(file.utf8))
      kind.bytes(2, output.bytes)
    }
    let metadata = try ExportFileWriter(path: "\(folder)/\(Self.kinds)/\(Self.kindsMetadata)")
    try metadata.append(bytes: kind.bytes)
    _ = try metadata.finish()

    var head = WireWriter()
    head.number(1, 2)
    head.number(3, 3)
    var part = WireWriter()
    part.bytes(1, head.bytes)
    part.bytes(2, Array("\(Self.kinds)/\(Self.kindsMetadata)".utf8))
    part.number(3, UInt64(documents))
    part.number(4, UInt64(bytes))
    var record = WireWriter()
    record.bytes(1, part.bytes)
    let overall = try LevelDBLogWriter(path: "\(folder)/\(name)\(DocumentMetadata.suffix)")
    try overall.append(OfficialExport.version)
    try overall.append(record.bytes)
    try overall.finish()
    return documents
  }

  private func begin() throws -> LevelDBLogWriter {
    let file = "output-\(files.count)"
    let writer = try LevelDBLogWriter(path: "\(folder)/\(Self.kinds)/\(file)")
    files.append(file)
    self.writer = writer
    return writer
  }

  private func end(_ writer: LevelDBLogWriter) throws {
    bytes += writer.size
    try writer.finish()
    self.writer = nil
  }
}
