import ArgumentParser
import EmulatorSuite
import JSONText

extension Functions {
  /// `hearth functions run`.
  struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Run a scheduled function now, whatever its schedule says.",
      discussion: """
        The run goes through delivery as one of the schedule does, with its retries. `hearth call` \
        is for callables, `hearth fire` for document triggers, `hearth clock advance` for letting \
        time pass.

          hearth functions run nightly
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The function's name.")
    var name: String

    func run() async throws {
      struct Reply: Decodable { var id: String }
      let client = try await suite.connect()
      let functions = try await FunctionNames(client)
      guard let function = functions[name] else { throw functions.unknown(name) }
      guard function.kind == .schedule else {
        throw CommandError("\(name) has no schedule: \(Call.invocationHint(function))")
      }
      let path = "/hearth/v1/functions/\(name.percentEncoded)/run"
      let reply = try Reply(decodingJSON: try await client.data("POST", path))
      Terminal.printLine("\(name) runs as event \(reply.id); see `hearth events show \(reply.id)`")
    }
  }
}
