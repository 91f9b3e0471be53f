import ArgumentParser
import EmulatorSuite
import Foundation
import JSONText

extension Events {
  /// `hearth events show`.
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show one event, why it waits, and the chain of what caused it.",
      discussion: """
        A write of a function is caused by the event that the function was handling; the chain \
        begins with the write of a client.

          hearth events show 42.0.welcome
          hearth events show 42.0.welcome --json
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The event's id, from `hearth events list`.")
    var id: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      let body = try await client.event(id)
      guard !json else {
        Terminal.print(json: body)
        return
      }
      let event = try EventDescription(decodingJSON: body)
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
        ("due", event.due),
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
}
