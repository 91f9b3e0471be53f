import ArgumentParser
import EmulatorSuite
import Identifiers
import JSONText

/// Deployment history: listing deployments, rolling back, and deleting functions.
extension Functions {
  /// `hearth functions deployments`.
  struct Deployments: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the deployments that can be served again, newest first.",
      discussion: """
        The current one and the last three others are kept, and whatever binaries they need.

          hearth functions deployments
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      let body = try await client.data("GET", "/hearth/v1/deployments")
      guard !json else {
        Terminal.print(json: body)
        return
      }
      let deployments = try [DeploymentDescription](decodingJSON: body)
      guard !deployments.isEmpty else {
        Terminal.print("Nothing is deployed yet; `hearth deploy` builds and deploys.")
        return
      }
      Terminal.print(
        Terminal.table(
          ["", "DEPLOYMENT", "TIME", "FUNCTIONS"],
          deployments.map {
            let names = $0.functions.joined(separator: ", ")
            let note = $0.note.map { "(\($0)) " } ?? ""
            return [$0.isCurrent ? "*" : "", $0.id, $0.time ?? "", note + names]
          }
        )
      )
    }
  }

  /// `hearth functions rollback`.
  struct Rollback: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Serve an earlier deployment again.",
      discussion: """
        Without an id the deployment that the current one replaced. It takes over in one step, as \
        a new one does; if it does not start, the current one continues. Settings in .env files \
        are those of today.

          hearth functions rollback
          hearth functions rollback 20261121T061502-x7Kp
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The deployment's id, from `hearth functions deployments`.")
    var id: String?

    func run() async throws {
      let client = try await suite.connect()
      if let id { try await Self.check(id, client) }
      let to = id.map { "?to=\($0.percentEncoded)" } ?? ""
      let reply = try await client.data("POST", "/hearth/v1/deployments/rollback\(to)")
      let now = try DeploymentDescription(decodingJSON: reply)
      Terminal.printLine("Serving \(now.id) again: \(now.functions.joined(separator: ", "))")
      for effect in now.effects ?? [] { Terminal.printLine(effect) }
    }

    /// Throws unless there is a deployment with an id.
    private static func check(_ id: String, _ client: ControlClient) async throws {
      let all = try await client.get("/hearth/v1/deployments", as: [DeploymentDescription].self)
      let ids = all.map(\.id)
      guard !ids.contains(id) else { return }
      throw CommandError(
        "There is no deployment \(id).\(NearestName.question(id, among: ids)) "
          + "Kept are: \(ids.isEmpty ? "none" : ids.joined(separator: ", "))."
      )
    }
  }

  /// `hearth functions delete`.
  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Serve some functions no longer, until the next deployment.",
      discussion: """
        Calls and events in flight finish. Events that wait for a deleted function are kept for \
        24 hours and run if it is deployed again by then; else they are dead. `hearth events discard --all \
        --state pending --function NAME` gives them up at once. The next `hearth deploy` brings \
        back whatever the package still declares, `hearth functions rollback` all of it at once.

          hearth functions delete welcome greeting
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The functions' names.")
    var names: [String]

    func run() async throws {
      let client = try await suite.connect()
      try await FunctionNames(client).check(names)
      let list = names.joined(separator: ",").percentEncoded
      let reply = try await client.data("DELETE", "/hearth/v1/functions?names=\(list)")
      let now = try DeploymentDescription(decodingJSON: reply)
      let rest = now.functions.isEmpty ? "nothing" : now.functions.joined(separator: ", ")
      Terminal.printLine("Deleted \(names.joined(separator: ", ")). Served now: \(rest).")
      for effect in now.effects ?? [] { Terminal.printLine(effect) }
    }
  }
}
