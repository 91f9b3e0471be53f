/// A writer of lines to a series of files, each of a bounded size.
final class ExportLines {
  private let folder: String
  private let kind: String
  private let fileBytesMax: Int
  private var writer: ExportFileWriter?
  private var begun = 0
  private var files: [ExportedFile] = []

  /// Creates a writer to the files `KIND-00000.jsonl`, `KIND-00001.jsonl` and so on in `folder`.
  init(folder: String, kind: String, fileBytesMax: Int) {
    self.folder = folder
    self.kind = kind
    self.fileBytesMax = fileBytesMax
  }

  /// Appends a line; starts another file if the current one is full.
  func append(_ line: some Sequence<UInt8>) throws {
    if let full = writer, full.size >= fileBytesMax { try end(full) }
    let writer = try self.writer ?? begin()
    try writer.append(line: line)
  }

  /// Ends the current file and returns all files since the last call.
  func endFiles() throws -> [ExportedFile] {
    if let writer { try end(writer) }
    defer { files = [] }
    return files
  }

  private func begin() throws -> ExportFileWriter {
    let digits = String(begun)
    let number = String(repeating: "0", count: max(0, 5 - digits.count)) + digits
    let writer = try ExportFileWriter(path: "\(folder)/\(kind)-\(number).jsonl")
    begun += 1
    self.writer = writer
    return writer
  }

  private func end(_ writer: ExportFileWriter) throws {
    files.append(try writer.finish())
    self.writer = nil
  }
}
