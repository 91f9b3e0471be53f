import DataExport
import Foundation
package import StatusCodes
import StorageEngine

/// The error of a failed export on exit; an existing export is unchanged.
package struct ExportOnExitError: StatusConvertible {
  package let statusCode: StatusCode
  package private(set) var statusMessage: String

  init(folder: String, cause: any Error) {
    statusCode = StatusError.publicError(for: cause).statusCode
    statusMessage = "The export to \(folder) failed: \(StatusError.message(of: cause))"
  }

  /// Returns the error with the place where the data of an ephemeral suite were kept.
  func keeping(_ data: String, of project: String) -> ExportOnExitError {
    var error = self
    error.statusMessage +=
      "\nThe data are kept: `hearth start --data \(data) --project \(project)` serves them."
    return error
  }
}

extension Suite {
  /// Imports the export that the configuration names.
  ///
  /// If it names none, reports an interrupted import of an earlier run.
  func importAtStart(_ importer: DataImporter, from storage: any OrderedStorage) async throws {
    guard let folder = configuration.importFolder else {
      for unfinished in try await DataImporter.unfinished(in: storage) {
        report(
          .importUnfinished(
            folder: unfinished.path,
            startTime: unfinished.startTime,
            command: unfinished.command
          )
        )
      }
      return
    }
    if folder == configuration.exportFolder, !FileManager.default.fileExists(atPath: folder) {
      return report(.importSkipped(folder: folder))
    }
    let summary = try await withThrowingTaskGroup(of: DataImporter.Summary?.self) { group in
      group.addTask { try await importer.import(folder, .init(isServing: false)) }
      group.addTask { [self] in
        // A cancelled sleep means that the import has ended.
        while (try? await Task.sleep(for: Self.importReportInterval)) != nil {
          if let part = importer.progress.part { report(.importProgress(part.description)) }
        }
        return nil
      }
      defer { group.cancelAll() }
      while let ended = try await group.next() { if let ended { return ended } }
      throw CancellationError()
    }
    report(.imported(TransferSummary(summary)))
  }

  private static let importReportInterval = Duration.seconds(5)

  /// Throws if the export on exit could not replace what is at its place now.
  func checkExportAtEnd() throws {
    if let folder = configuration.exportFolder { try DataExporter.check(destination: folder) }
  }

  /// Writes the export that the configuration asks for on exit, in the form of what it replaces.
  func exportAtEnd(_ exporter: DataExporter) async throws {
    guard let folder = configuration.exportFolder else { return }
    do {
      let summary = try await exporter.exportAll(
        of: configuration.project,
        to: folder,
        replaces: true,
        form: DataExporter.form(ofExportAt: folder)
      )
      report(.exported(TransferSummary(summary)))
    } catch {
      throw ExportOnExitError(folder: folder, cause: error)
    }
  }
}
