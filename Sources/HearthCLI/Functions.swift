import ArgumentParser
import EmulatorSuite
import Foundation
import Invocation

/// `hearth functions`: what is deployed and what it logged.
struct Functions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show deployed functions and their logs.",
    discussion: """
        hearth functions list
        hearth functions logs embedMessage --follow
      """,
    subcommands: [List.self, Logs.self],
    defaultSubcommand: List.self
  )

  /// `hearth functions list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the deployed functions with their triggers and URLs.",
      discussion: "  hearth functions list --json"
    )

    @OptionGroup var suite: SuiteLocation

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      if json {
        let body = try await client.data("GET", "/hearth/v1/functions")
        Terminal.print(String(decoding: body, as: UTF8.self))
        return
      }
      let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
      guard !functions.isEmpty else {
        Terminal.print("Nothing is deployed yet; `hearth deploy` builds and deploys.")
        return
      }
      Terminal.print(Self.table(functions))
    }

    /// The functions as `start` and `list` show them.
    static func table(_ functions: [FunctionDescription]) -> String {
      Terminal.table(
        ["FUNCTION", "KIND", "TRIGGER OR URL"],
        functions.map { [$0.name, $0.kind.rawValue, $0.trigger ?? $0.url ?? ""] }
      )
    }
  }

  /// `hearth functions logs`.
  struct Logs: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print what a function logged, oldest first.",
      discussion: """
          hearth functions logs embedMessage
          hearth functions logs embedMessage --follow
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The function's name; all functions when left out.")
    var name: String?

    @Option(help: "At most so many lines of the past.")
    var limit = 200

    @Flag(help: "Go on with new lines as they come.")
    var follow = false

    func run() async throws {
      let client = try await suite.connect()
      var query = "?limit=\(limit)&follow=\(follow)"
      if let name { query += "&function=\(name.percentEncoded)" }
      var isEmpty = true
      try await client.lines("GET", "/hearth/v1/logs\(query)") { line in
        let entry = try JSONDecoder().decode(FunctionLogEntry.self, from: Data(line.utf8))
        Terminal.print(LogLine(entry).text(coloured: false))
        isEmpty = false
      }
      if isEmpty { Terminal.note(name.map { "\($0) has logged nothing." } ?? "No log lines.") }
    }
  }
}
