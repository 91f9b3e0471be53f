import ArgumentParser
import EmulatorSuite
import JSONText

/// `hearth clock`: the suite's time.
struct Clock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the suite's time, or let it jump ahead.",
    discussion: """
      Retries, tasks and schedules follow this time, and documents are written at it. A jump runs \
      everything that is due on the way, each before the next, and returns when all of it has \
      ended. A long one shows how far it has come; Ctrl-C ends it within a second. Time never goes back; the \
      next start has the machine's again. A function that reads the machine's clock sees no jump.

        hearth clock
        hearth clock advance 24h
      """,
    subcommands: [Show.self, Advance.self],
    defaultSubcommand: Show.self
  )

  /// `hearth clock show`.
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the suite's time.",
      discussion: "  hearth clock show"
    )

    @OptionGroup var suite: SuiteLocation

    func run() async throws {
      let client = try await suite.connect()
      Terminal.print(
        Clock.text(try await client.get("/hearth/v1/clock", as: ClockDescription.self))
      )
    }
  }

  /// `hearth clock advance`.
  struct Advance: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Let the suite's time jump ahead.",
      discussion: """
          hearth clock advance 90s
          hearth clock advance 24h
          hearth clock advance 2026-12-01T00:00:00Z
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: ArgumentHelp("How far, or to when.", valueName: "duration|time"))
    var amount: String

    func validate() throws {
      guard !amount.hasPrefix("-") else { throw ValidationError(TimeSpan.onlyForward(amount)) }
      guard TimeSpan.seconds(amount) != nil || amount.contains("T") else {
        throw ValidationError(
          "\"\(amount)\" is neither a duration, such as 30s, 10m, 24h or 7d, nor a time, such as "
            + "2026-12-01T00:00:00Z."
        )
      }
    }

    func run() async throws {
      let client = try await suite.connect()
      let seconds = TimeSpan.seconds(amount)
      let jump: JSONValue =
        seconds.map { ["advanceSeconds": .number($0)] } ?? ["to": .string(amount)]
      let start = try await client.get("/hearth/v1/clock", as: ClockDescription.self).aheadSeconds
      let reply = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
        group.addTask {
          try await client.data(
            "POST",
            "/hearth/v1/clock",
            body: jump.bytes,
            timeout: .seconds(86_400)
          )
        }
        group.addTask {
          await report(client, from: start, seconds)
          return nil
        }
        defer { group.cancelAll() }
        while let ended = try await group.next() { if let ended { return ended } }
        return []
      }
      Terminal.print(Clock.text(try ClockDescription(decodingJSON: reply)))
    }

    /// Prints the progress of the jump every few seconds, until cancelled.
    private func report(_ client: ControlClient, from start: Double, _ seconds: Double?) async {
      // A cancelled sleep means that the jump has ended.
      while (try? await Task.sleep(for: Self.reportInterval)) != nil {
        // Errors are ignored here, because the jump itself reports them.
        guard let clock = try? await client.get("/hearth/v1/clock", as: ClockDescription.self)
        else { continue }
        let passed = clock.aheadSeconds - start
        let part = seconds.map { ", \(Int(passed / max($0, 1) * 100))% of \(amount)" } ?? ""
        Terminal.note("The jump continues: it is \(clock.now)\(part).")
      }
    }

    private static let reportInterval = Duration.seconds(2)
  }

  private static func text(_ clock: ClockDescription) -> String {
    clock.aheadSeconds == 0
      ? "It is \(clock.now), the machine's time."
      : "It is \(clock.now), \(TimeSpan.text(clock.aheadSeconds)) ahead of the machine."
  }
}

/// Durations in the form that people type, such as `30s`.
enum TimeSpan {
  /// Returns the seconds of `30s`, `10m`, `2h` or `1d`; nil for any other text.
  static func seconds(_ text: String) -> Double? {
    guard let unit = text.last.flatMap({ units[$0] }), let count = Double(text.dropLast()),
      count >= 0, count.isFinite
    else { return nil }
    return count * unit
  }

  /// Returns the refusal of a duration below 0.
  static func onlyForward(_ amount: String) -> String {
    "\(amount) would turn the time back, and it goes only forward: give a duration such as 5m. The "
      + "next start of the suite has the machine's time again."
  }

  /// Formats the two largest units of a duration, such as `1d 2h`.
  static func text(_ seconds: Double) -> String {
    var left = Int(seconds.rounded())
    var parts: [String] = []
    for (name, unit) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] where left >= unit {
      parts.append("\(left / unit)\(name)")
      left %= unit
    }
    return parts.isEmpty ? "less than 1s" : parts.prefix(2).joined(separator: " ")
  }

  private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
}
