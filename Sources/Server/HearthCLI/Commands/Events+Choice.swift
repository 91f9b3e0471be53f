import ArgumentParser
import EmulatorSuite
import JSONText

extension Events {
  /// The options that select one event by its ID, or all events of a state and function.
  struct Choice: ParsableArguments {
    @Argument(help: "The event's id, from `hearth events list`.")
    var id: String?

    @Flag(help: "All events of --state and --function.")
    var all = false

    @Option(help: "With --all, only this state.")
    var state: String?

    @Option(help: "With --all, only this function.")
    var function: String?

    /// Throws unless the choice is either one event or `--all`, of one of the states.
    func check(states: [String]) throws {
      guard (id == nil) == all else { throw ValidationError("Name an event, or give --all.") }
      guard all || (state == nil && function == nil) else {
        throw ValidationError("--state and --function choose among --all.")
      }
      try Events.check(state: state, among: states)
    }

    /// Throws if nothing was chosen because the function does not exist.
    ///
    /// A function that is not deployed any more may still have events.
    func checkFunction(_ client: ControlClient, count: Int) async throws {
      guard count == 0, let function else { return }
      try await FunctionNames(client).check([function])
    }

    /// The URL query that selects events for `--all`.
    var query: String {
      let parts = [("state", state), ("function", function)].compactMap { name, value in
        value.map { "\(name)=\($0.percentEncoded)" }
      }
      return parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
    }
  }
}

extension ControlClient {
  /// Requests an action on many events and returns the number of affected events.
  func count(_ path: String) async throws -> Int {
    let reply = try await data("POST", path, timeout: .seconds(600))
    return try EventCount(decodingJSON: reply).count
  }
}
