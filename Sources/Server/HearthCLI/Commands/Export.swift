import JSONText
import ArgumentParser
import EmulatorSuite
import Foundation

/// `hearth export`: writes the suite's data to a folder.
struct Export: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Write the project's documents and users, the Realtime Database and all vectors to a folder.",
    usage: "hearth export <folder> [--force] [<options>]",
    discussion: """
      The documents of all databases of the suite's project are as they were at one moment, while \
      writes continue; those of other projects are left out. The folder appears in one step, when \
      everything is on the disk; until then an earlier export there is untouched. It is laid out \
      as Firebase's exports are, with one document a line in Firestore's JSON form, so that it can \
      be read, compared and kept beside the code. Each instance of the Realtime Database is a JSON \
      file, as it was when it was written.

        hearth export ./seed            a new folder
        hearth export ./seed --force    replaces the export that is there
        hearth export ./seed --format firebase    for the official emulator
        hearth start --ephemeral --import ./seed --export-on-exit
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: ArgumentHelp("The folder to write.", valueName: "folder"))
  var folder: String

  @Flag(help: "Replace the export that is there; anything else than an export never is.")
  var force = false

  @Option(
    help: ArgumentHelp(
      "The form of the documents: hearth, or firebase for the official emulator.",
      discussion: """
        The form of Firebase is binary, lacks the times of documents and holds the database \
        (default) only. The official emulator reads it with --import-data, Firebase's tools with \
        --import.
        """
    )
  )
  var format = Form.hearth

  enum Form: String, ExpressibleByArgument, CaseIterable {
    case hearth, firebase
  }

  func run() async throws {
    let client = try await suite.connect()
    let summary: TransferSummary
    do {
      summary = try await client.transfer(
        "/hearth/v1/export",
        ExportOrder(path: absolutePath(folder), force: force, format: format.rawValue)
      )
    } catch let failure as CommandError
      where failure.message.hasSuffix("already holds an export.")
    {
      throw CommandError(failure.message + " --force replaces it.", failure.code)
    }
    Terminal.print(Self.text(summary))
  }

  /// Formats the result of an export.
  static func text(_ summary: TransferSummary) -> String {
    "Exported \(summary.contents) to \(summary.path)"
  }
}

extension TransferSummary {
  /// The counts in words; users and Realtime Databases only if there are some.
  var contents: String {
    let users = users > 0 ? ", \(counted(users, "user"))" : ""
    let trees = instances.map { ", \(counted($0, "Realtime Database"))" } ?? ""
    return "\(counted(documents, "document"))\(users)\(trees) and \(counted(vectors, "vector"))"
  }
}

extension ControlClient {
  /// Starts an export or import and waits until it ends, for up to a day.
  func transfer(_ path: String, _ order: some Encodable) async throws -> TransferSummary {
    let body = try order.jsonBytes()
    let reply: [UInt8]
    do {
      reply = try await data("POST", path, body: body, timeout: .seconds(86_400))
    } catch var failure as CommandError {
      // What is wrong is the data, not the command line.
      if failure.code == .usage { failure.code = .failed }
      throw failure
    }
    return try TransferSummary(decodingJSON: reply)
  }
}

/// Returns the absolute path for a path relative to the working directory.
func absolutePath(_ path: String) -> String { URL(filePath: path).standardizedFileURL.path }

/// Formats a number with its noun, in the plural unless the number is 1.
func counted(_ number: Int, _ noun: String) -> String {
  number == 1 ? "1 \(noun)" : "\(number) \(noun)s"
}
