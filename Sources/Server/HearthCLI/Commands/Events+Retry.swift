import ArgumentParser

extension Events {
  /// `hearth events retry`.
  struct Retry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Try failed or dead events again, counting their attempts from zero.",
      discussion: """
          hearth events retry 42.0.welcome
          hearth events retry --all --state dead --function welcome
        """
    )

    @OptionGroup var suite: SuiteLocation
    @OptionGroup var choice: Choice

    func validate() throws { try choice.check(states: ["failed", "dead"]) }

    func run() async throws {
      let client = try await suite.connect()
      guard let id = choice.id else {
        let count = try await client.count("/hearth/v1/events/retry\(choice.query)")
        try await choice.checkFunction(client, count: count)
        Terminal.print(
          count == 1 ? "1 event is pending again" : "\(count) events are pending again"
        )
        return
      }
      _ = try await client.event(id, "POST", "/retry")
      Terminal.print("\(id) is pending again")
    }
  }
}
