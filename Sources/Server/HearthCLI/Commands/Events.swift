import ArgumentParser
import EmulatorSuite
import Foundation

extension ControlClient {
  /// Returns a sentence on the events that wait for the first deployment; nil if there are none.
  func eventsBeforeDeployment() async throws -> String? {
    let triggers = try await get("/hearth/v1/triggers", as: TriggersDescription.self)
    let count = triggers.eventsBeforeDeployment
    guard count > 0 else { return nil }
    return "\(counted(count, "event")) wait\(count == 1 ? "s" : "") for the first deployment; "
      + "`hearth deploy` builds and deploys."
  }
}

/// `hearth events`: shows and retries the deliveries of events to functions.
struct Events: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show events and what became of them; try failed ones again.",
    discussion: """
      States: pending (to be tried, or tried again later), running, succeeded, failed (the \
      handler failed and its function does not retry), dead (given up). Failed and dead events \
      can be retried, and all that are not running discarded.

        hearth events list --state failed
        hearth events show 12.0.embedMessage
        hearth events retry 12.0.embedMessage
        hearth events retry --all --state dead
        hearth events discard 12.0.embedMessage
      """,
    subcommands: [List.self, Show.self, Retry.self, Discard.self],
    defaultSubcommand: List.self
  )

  /// `hearth events list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List events, newest first.",
      discussion: "  hearth events list --state dead --function embedMessage"
    )

    @OptionGroup var suite: SuiteLocation

    @Option(help: "Only this state: pending, of these running, succeeded, failed or dead.")
    var state: String?

    @Option(help: "Only this function.")
    var function: String?

    @Option(help: "At most so many, up to 1000.")
    var limit = 50

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      var query = "?limit=\(limit)"
      if let state { query += "&state=\(state.percentEncoded)" }
      if let function { query += "&function=\(function.percentEncoded)" }
      let body = try await client.data("GET", "/hearth/v1/events\(query)")
      if json {
        Terminal.print(json: body)
        return
      }
      let events = try JSONDecoder().decode([EventDescription].self, from: Data(body))
      let waiting = try await client.eventsBeforeDeployment()
      if let waiting { Terminal.note(waiting) }
      guard !events.isEmpty else {
        if waiting == nil { Terminal.print("No events.") }
        return
      }
      Terminal.print(
        Terminal.table(
          ["ID", "STATE", "KIND", "DOCUMENT", "ATTEMPTS", "TIME"],
          events.map {
            [$0.id, $0.state, $0.kind, $0.document, String($0.attempts), $0.time]
          }
        )
      )
    }
  }
}
