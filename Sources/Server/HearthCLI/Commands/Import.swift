import ArgumentParser
import EmulatorSuite
import Foundation
import JSONText

/// `hearth import`: reads an export into the running suite.
struct Import: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Read an export or a JSON file into the running suite.",
    usage: "hearth import <folder|file> [--fire-triggers] [--replace] [<options>]",
    discussion: """
      An export of `hearth export`, of the official emulator (Firebase's tools) or of \
      `gcloud firestore export`, or a file of JSON. \
      The export is checked as a whole before anything is written: format, counts, checksums and \
      every line; a fault is named with its file and line. Documents keep the times they were \
      created and updated. Those of the same name are replaced, all others stay, and each instance of \
      the Realtime Database in the export is replaced as a whole; --replace first \
      empties the databases that the export holds, and deletes all users, instances and vectors if \
      it holds some. No function fires unless --fire-triggers says \
      so. An import that was cut short can simply be run again; the next start tells of it.

      A JSON file has documents that were written by hand, by their paths, such as
      {"users/tina": {"name": "Tina", "born": {"$timestamp": "1990-04-01T00:00:00Z"}}}. What JSON \
      lacks is an object of one member: $timestamp, $bytes, $reference, $geopoint, $integer, \
      $double, $vector. With --database the file is the tree of a Realtime Database, which it \
      replaces.

        hearth import ./seed
        hearth import ./seed --replace
        hearth import seed.json
        hearth import presence.json --database
        hearth start --import ./seed      at the start, before anyone is served
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(
    help: ArgumentHelp(
      "The folder of an export, or a JSON file of documents.",
      valueName: "folder|file"
    )
  )
  var folder: String

  @Flag(help: "The file is the tree of the project's Realtime Database, PROJECT-default-rtdb.")
  var database = false

  @Option(help: "The file is the tree of this instance of the Realtime Database.")
  var instance: String?

  @Flag(help: "Fire triggers for each document that is new or differs from the one there.")
  var fireTriggers = false

  @Flag(help: "First delete every document of the export's databases, without events.")
  var replace = false

  func run() async throws {
    // A folder, the metadata of an export, and a file that cannot be read or is too large are left
    // to the suite.
    let attributes = try? FileManager.default.attributesOfItem(atPath: folder)
    if !folder.hasSuffix("overall_export_metadata"),
      attributes?[.type] as? FileAttributeType == .typeRegular,
      (attributes?[.size] as? Int ?? 0) <= Self.checkedBytesMax,
      // The suite reports a file that cannot be read.
      let data = try? Data(contentsOf: URL(filePath: folder))
    {
      try JSONInput.check(Array(data), name: folder, remedy: "Correct it.")
      if !database, instance == nil {
        try Self.checkIsNotUsers(Array(data), name: folder)
      }
    }
    let client = try await suite.connect()
    let order = ImportOrder(
      path: absolutePath(folder),
      fireTriggers: fireTriggers,
      replace: replace,
      instance: instance ?? (database ? "" : nil)
    )
    let summary = try await withThrowingTaskGroup(of: TransferSummary?.self) { group in
      group.addTask { try await client.transfer("/hearth/v1/import", order) }
      group.addTask {
        await Self.report(client)
        return nil
      }
      defer { group.cancelAll() }
      while let ended = try await group.next() { if let ended { return ended } }
      throw CancellationError()
    }
    Terminal.print(Self.text(summary))
  }

  /// Throws a usage failure for the file that `firebase auth:export` writes.
  private static func checkIsNotUsers(_ json: [UInt8], name: String) throws {
    guard let members = try jsonMembersInOrder(of: json), members.map(\.name) == ["users"],
      members[0].value.first == UInt8(ascii: "[")
    else { return }
    throw CommandError(
      """
      \(name) is a list of users, which is no export. Users are imported with the folder of \
      `firebase emulators:export DIR --only auth`; `hearth auth create` creates single ones.
      """,
      .usage
    )
  }

  /// Shows the progress of a long import until cancelled: on one line for a person, else in a log.
  private static func report(_ client: ControlClient) async {
    // A cancelled sleep means that the import has ended.
    let interval = Terminal.isInteractive ? redrawInterval : lineInterval
    while (try? await Task.sleep(for: interval)) != nil {
      // Errors are ignored here, because the import itself reports them.
      let progress = try? await client.get("/hearth/v1/import", as: TransferProgress.self)
      if let text = progress?.text { Terminal.noteProgress("Importing: \(text)") }
    }
    Terminal.endProgress()
  }

  private static let checkedBytesMax = 64 << 20
  private static let redrawInterval = Duration.seconds(1)
  private static let lineInterval = Duration.seconds(10)

  /// Formats the result of an import.
  static func text(_ summary: TransferSummary) -> String {
    let same = summary.documents - summary.changedDocuments
    let skipped = (summary.skippedParts ?? []).joined(separator: ", ")
    return "Imported \(summary.contents) from \(summary.path)"
      + (same > 0
        ? "; \(counted(same, "document")) \(same == 1 ? "was" : "were") there already" : "")
      + (skipped.isEmpty ? "" : ". Left out, because Hearth has no emulator for it: \(skipped)")
  }
}
