import ArgumentParser
import EmulatorSuite
import Foundation

/// `hearth functions`: shows and manages deployed functions and their logs.
struct Functions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show deployed functions and their logs; go back to an earlier deployment.",
    discussion: """
        hearth functions list
        hearth functions stats
        hearth functions logs welcome --follow
        hearth functions rollback
      """,
    subcommands: [
      Config.self, List.self, Stats.self, Logs.self, Deployments.self, Rollback.self, Delete.self,
      Run.self,
    ],
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
        Terminal.print(json: body)
        return
      }
      let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
      guard !functions.isEmpty else {
        Terminal.print("Nothing is deployed yet; `hearth deploy` builds and deploys.")
        return
      }
      Terminal.print(Self.table(functions))
    }

    /// Formats the functions in the way that `start` and `list` show them.
    static func table(_ functions: [FunctionDescription]) -> String {
      Terminal.table(
        ["FUNCTION", "KIND", "TRIGGER OR URL"],
        functions.map { [$0.name, $0.kind.rawValue, $0.trigger ?? $0.url ?? ""] }
      )
    }
  }
}
