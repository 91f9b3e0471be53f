import ArgumentParser

extension Events {
  /// `hearth events discard`.
  struct Discard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Give up events for good: they are delivered no more and no longer shown.",
      discussion: """
          hearth events discard 42.0.welcome
          hearth events discard --all --state dead
        """
    )

    @OptionGroup var suite: SuiteLocation
    @OptionGroup var choice: Choice

    func validate() throws {
      try choice.check(states: ["pending", "failed", "dead"])
      guard choice.id != nil || choice.state != nil else {
        throw ValidationError("--all needs --state, so that nothing is lost by accident.")
      }
    }

    func run() async throws {
      let client = try await suite.connect()
      guard let id = choice.id else {
        let count = try await client.count("/hearth/v1/events/discard\(choice.query)")
        try await choice.checkFunction(client, count: count)
        Terminal.print("Discarded \(counted(count, "event"))")
        return
      }
      _ = try await client.event(id, "POST", "/discard")
      Terminal.print("Discarded \(id)")
    }
  }
}
