import ArgumentParser
import EmulatorSuite
import Foundation

/// Commands to inspect an event, retry it or discard it.
extension Events {
  /// `hearth events show`.
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show one event, why it waits, and the chain of what caused it.",
      discussion: """
        A write of a function is caused by the event that the function was handling; the chain \
        begins with the write of a client.

          hearth events show 42.0.embedMessage
          hearth events show 42.0.embedMessage --json
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The event's id, from `hearth events list`.")
    var id: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      let body = try await client.data("GET", "/hearth/v1/events/\(id.percentEncoded)")
      guard !json else {
        Terminal.print(json: body)
        return
      }
      let event = try JSONDecoder().decode(EventDescription.self, from: Data(body))
      Terminal.print(Self.text(event))
      let chain = try await causes(of: event, client)
      guard !chain.isEmpty else { return }
      Terminal.print("caused by")
      for (depth, cause) in chain.enumerated() {
        Terminal.printLine(String(repeating: "  ", count: depth + 1) + cause)
      }
    }

    /// Returns a line for each cause, nearest first, until one is no longer kept.
    private func causes(of event: EventDescription, _ client: ControlClient) async throws
      -> [String]
    {
      var lines: [String] = []
      var next = event.cause
      while let id = next, lines.count < Self.causesMax {
        do {
          let path = "/hearth/v1/events/\(id.percentEncoded)"
          let cause = try await client.get(path, as: EventDescription.self)
          lines.append("\(cause.id)  \(cause.kind) \(cause.document)  \(cause.state)")
          next = cause.cause
        } catch is CommandError {
          lines.append("\(id)  no longer kept")
          next = nil
        }
      }
      return lines
    }

    /// Formats the event for a person, with one row per fact; absent facts are left out.
    static func text(_ event: EventDescription) -> String {
      let rows: [(String, String?)] = [
        ("event", event.id), ("state", event.state), ("function", event.function),
        ("kind", event.kind), ("document", event.document.isEmpty ? nil : event.document),
        ("time", event.time), ("attempts", "\(event.attempts)"),
        ("crashes", event.crashes == 0 ? nil : "\(event.crashes)"), ("waiting", event.waits),
        ("next try", event.due),
        ("settled", event.settled), ("error", event.error),
      ]
      return rows.compactMap { name, value in
        value.map {
          name.padding(toLength: width, withPad: " ", startingAt: 0) + $0.indented(by: width)
        }
      }.joined(separator: "\n")
    }

    private static let width = 10
    /// The maximum length of the chain shown; a longer one is a loop, which the suite stops.
    private static let causesMax = 50
  }

  /// `hearth events retry`.
  struct Retry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Try failed or dead events again, counting their attempts from zero.",
      discussion: """
          hearth events retry 42.0.embedMessage
          hearth events retry --all --state dead --function embedMessage
        """
    )

    @OptionGroup var suite: SuiteLocation
    @OptionGroup var choice: Choice

    func validate() throws { try choice.check() }

    func run() async throws {
      let client = try await suite.connect()
      guard let id = choice.id else {
        let count = try await client.count("/hearth/v1/events/retry\(choice.query)")
        Terminal.print(
          count == 1 ? "1 event is pending again" : "\(count) events are pending again"
        )
        return
      }
      _ = try await client.data("POST", "/hearth/v1/events/\(id.percentEncoded)/retry")
      Terminal.print("\(id) is pending again")
    }
  }

  /// `hearth events discard`.
  struct Discard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Give up events for good: they are delivered no more and no longer shown.",
      discussion: """
          hearth events discard 42.0.embedMessage
          hearth events discard --all --state dead
        """
    )

    @OptionGroup var suite: SuiteLocation
    @OptionGroup var choice: Choice

    func validate() throws {
      try choice.check()
      guard choice.id != nil || choice.state != nil else {
        throw ValidationError("--all needs --state, so that nothing is lost by accident.")
      }
    }

    func run() async throws {
      let client = try await suite.connect()
      guard let id = choice.id else {
        let count = try await client.count("/hearth/v1/events/discard\(choice.query)")
        Terminal.print("Discarded \(counted(count, "event"))")
        return
      }
      _ = try await client.data("POST", "/hearth/v1/events/\(id.percentEncoded)/discard")
      Terminal.print("Discarded \(id)")
    }
  }

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

    /// Throws unless the choice is either one event or `--all`.
    func check() throws {
      guard (id == nil) == all else { throw ValidationError("Name an event, or give --all.") }
      guard all || (state == nil && function == nil) else {
        throw ValidationError("--state and --function choose among --all.")
      }
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
  fileprivate func count(_ path: String) async throws -> Int {
    let reply = try await data("POST", path, timeout: .seconds(600))
    return try JSONDecoder().decode(EventCount.self, from: Data(reply)).count
  }
}
