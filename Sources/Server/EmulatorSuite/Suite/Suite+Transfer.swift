import DataExport
import Foundation
package import RuntimeSupport
import StorageEngine

/// The export at the end failed; an earlier export is untouched.
package struct ExportOnExitError: StatusConvertible {
  package let statusCode: StatusCode
  package let statusMessage: String

  /// The error for a folder that could not be written.
  init(folder: String, cause: any Error) {
    let status = cause as? any StatusConvertible
    statusCode = status?.statusCode ?? .internal
    statusMessage = "The export to \(folder) failed: \(status?.statusMessage ?? "\(cause)")"
  }
}

extension Suite {
  /// Reads the export that the configuration names, and reports an import that was interrupted.
  func importAtStart(_ importer: DataImporter, from storage: any OrderedStorage) async throws {
    guard let folder = configuration.importFolder else {
      if let unfinished = try await DataImporter.unfinished(in: storage) {
        report(.importUnfinished(folder: unfinished.path, startTime: unfinished.startTime))
      }
      return
    }
    if folder == configuration.exportFolder, !FileManager.default.fileExists(atPath: folder) {
      return report(.importSkipped(folder: folder))
    }
    report(.imported(TransferSummary(try await importer.import(folder, .init()))))
  }

  /// Writes the export that the configuration asks for at the end.
  func exportAtEnd(_ exporter: DataExporter) async throws {
    guard let folder = configuration.exportFolder else { return }
    do {
      let summary = try await exporter.exportAll(
        of: configuration.project,
        to: folder,
        replaces: true
      )
      report(.exported(TransferSummary(summary)))
    } catch {
      throw ExportOnExitError(folder: folder, cause: error)
    }
  }
}
