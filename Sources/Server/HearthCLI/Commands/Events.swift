import ArgumentParser
import EmulatorSuite
import Identifiers
import JSONText

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
        hearth events show 12.0.welcome
        hearth events retry 12.0.welcome
        hearth events retry --all --state dead
        hearth events discard 12.0.welcome
      """,
    subcommands: [List.self, Show.self, Retry.self, Discard.self],
    defaultSubcommand: List.self
  )

  /// `hearth events list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List events, newest first.",
      discussion: "  hearth events list --state dead --function welcome"
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

    func validate() throws {
      try Events.check(state: state, among: Events.states)
      guard (1...1000).contains(limit) else {
        throw ValidationError("--limit is \(limit); give 1 to 1000.")
      }
    }

    func run() async throws {
      let client = try await suite.connect()
      var query = "?limit=\(limit)"
      if let state { query += "&state=\(state.percentEncoded)" }
      if let function { query += "&function=\(function.percentEncoded)" }
      let body = try await client.data("GET", "/hearth/v1/events\(query)")
      let events = try [EventDescription](decodingJSON: body)
      // A function that is not deployed any more may still have events.
      if events.isEmpty, let function { try await FunctionNames(client).check([function]) }
      guard !json else { return Terminal.print(json: body) }
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

extension Events {
  /// The states that `list` knows, of which `running` is a part of `pending`.
  static let states = ["pending", "running", "succeeded", "failed", "dead"]

  /// Throws a usage failure unless a state is nil or known.
  static func check(state: String?, among states: [String]) throws {
    guard let state, !states.contains(state) else { return }
    let parts = state.split(separator: ",").map(String.init)
    guard parts.count < 2 || !parts.allSatisfy(states.contains) else {
      throw ValidationError(
        "--state is \"\(state)\", and takes one state; run the command once for each."
      )
    }
    throw ValidationError(
      "--state is \"\(state)\".\(NearestName.question(state, among: states)) "
        + "States: \(states.joined(separator: ", "))."
    )
  }
}

extension ControlClient {
  /// Sends a request about one event; the failure for an unknown one asks for the likely one.
  func event(
    _ id: String,
    _ method: String = "GET",
    _ action: String = ""
  ) async throws -> [UInt8] {
    do {
      return try await data(method, "/hearth/v1/events/\(id.percentEncoded)\(action)")
    } catch var failure as CommandError {
      guard ["NOT_FOUND", "INVALID_ARGUMENT"].contains(failure.status) else { throw failure }
      // Without the list, the failure has no question.
      let known = try? await get("/hearth/v1/events?limit=1000", as: [EventDescription].self)
      // An event of another number is another event, however alike the ids are.
      let number = id.prefix { $0 != "." } + "."
      let near = (known ?? []).map(\.id).filter { $0.hasPrefix(number) }
      failure.message +=
        near.count == 1
        ? " Did you mean \(near[0])?" : NearestName.question(id, among: near)
      throw failure
    }
  }
}
