#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The comparison of the generated files with those of a folder.
extension ProductionFiles {
  /// The files that edits are looked for in: all but the record.
  private var generated: [File] { files.filter { $0.name != Self.recordName } }

  /// Returns the names of the files that somebody edited and that the next write replaces.
  ///
  /// `folder` has the contents of the files that exist. Without a record that can be read, each
  /// file with other contents counts as edited; with a record that has no hashes, none does.
  package func edited(in folder: [String: Data], since record: ProductionRecord?) -> [String] {
    generated.filter { file in
      guard let contents = folder[file.name], contents != Data(file.text.utf8) else { return false }
      return record?.isEdited(file.name, contents) ?? true
    }.map(\.name)
  }

  /// Returns how the files of a folder differ from the generated ones, in words, one a line.
  ///
  /// `plansDiffer` is true if the resources differ from those of the record; then files that nobody
  /// edited differ too, which is no news.
  package func differences(
    in folder: [String: Data],
    since record: ProductionRecord,
    plansDiffer: Bool
  ) -> [String] {
    let edited = Set(edited(in: folder, since: record))
    return generated.compactMap { file in
      guard !edited.contains(file.name) else {
        return "! \(file.name) was edited; the next write replaces it and keeps the edited text in "
          + "\(file.name).old"
      }
      guard let contents = folder[file.name] else {
        let isExpected = record.files.map { $0[file.name] != nil } ?? !plansDiffer
        return isExpected ? "! \(file.name) is missing; the next write adds it" : nil
      }
      guard !plansDiffer, contents != Data(file.text.utf8) else { return nil }
      return record.files == nil
        ? "! \(file.name) was edited, or written by another version of hearth"
        : "! \(file.name) was written by another version of hearth, or with other options"
    }
  }
}
