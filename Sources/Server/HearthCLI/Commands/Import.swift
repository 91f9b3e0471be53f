import ArgumentParser
import EmulatorSuite
import Foundation

/// `hearth import`: reads an export into the running suite.
struct Import: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Read an export's documents, users and vectors into the running suite.",
    usage: "hearth import <folder> [--fire-triggers] [--replace] [<options>]",
    discussion: """
      The export is checked as a whole before anything is written: format, counts, checksums and \
      every line; a fault is named with its file and line. Documents keep the times they were \
      created and updated. Those of the same name are replaced, all others stay; --replace first \
      empties the databases that the export holds, and deletes all users and vectors if it holds \
      some. No function fires unless --fire-triggers says \
      so. An import that was cut short can simply be run again; the next start tells of it.

        hearth import ./seed
        hearth import ./seed --replace
        hearth start --import ./seed      at the start, before anyone is served
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: ArgumentHelp("The folder that `hearth export` wrote.", valueName: "folder"))
  var folder: String

  @Flag(help: "Fire triggers for each document that is new or differs from the one there.")
  var fireTriggers = false

  @Flag(help: "First delete every document of the export's databases, without events.")
  var replace = false

  func run() async throws {
    let client = try await suite.connect()
    let summary = try await client.transfer(
      "/hearth/v1/import",
      ImportOrder(path: absolutePath(folder), fireTriggers: fireTriggers, replace: replace)
    )
    Terminal.print(Self.text(summary))
  }

  /// Formats the result of an import.
  static func text(_ summary: TransferSummary) -> String {
    let same = summary.documents - summary.changedDocuments
    return "Imported \(summary.contents) from \(summary.path)"
      + (same > 0
        ? "; \(counted(same, "document")) \(same == 1 ? "was" : "were") there already" : "")
  }
}
