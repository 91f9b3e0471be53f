import ArgumentParser
import EmulatorSuite
import JSONText

extension Functions {
  /// `hearth functions stats`.
  struct Stats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show what each function has done since the suite's start.",
      discussion: """
          hearth functions stats
          hearth functions stats welcome greeting
          hearth functions stats --json

        Calls, events, tasks and schedules count alike, each attempt by itself. REFUSED means a \
        status from 400 to 499; FAILED a status from 500, a crash or a timeout. P50 and P99 are \
        upper bounds and count the start of a worker. PENDING events are not settled; OLDEST is \
        the age of the oldest one that runs or could run now. NOTE says why all of a function's \
        events wait, or why it has too few workers. Prometheus finds the same numbers, and more, \
        at /metrics of the hub; `hearth top` shows them as they change.
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Argument(help: "The functions' names; all functions when left out.")
    var names: [String] = []

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
      let client = try await suite.connect()
      var stats = try await client.get("/hearth/v1/functions/stats", as: [FunctionStats].self)
      if !names.isEmpty {
        let known = Swift.Set(stats.map(\.name))
        if let name = names.first(where: { !known.contains($0) }) {
          throw try await FunctionNames(client).unknown(name)
        }
        stats = stats.filter { names.contains($0.name) }
      }
      guard !json else {
        let text = try stats.jsonBytes()
        return Terminal.print(json: String(decoding: text, as: UTF8.self))
      }
      if let waiting = try await client.eventsBeforeDeployment() { Terminal.note(waiting) }
      guard !stats.isEmpty else {
        return Terminal.print("Nothing is deployed yet; `hearth deploy` builds and deploys.")
      }
      Terminal.print(FunctionTable(stats).text)
    }
  }
}

/// A table of the figures of all functions, for people.
struct FunctionTable {
  private let stats: [FunctionStats]
  private let perSecond: [String: Double]?

  /// Creates a table; with earlier figures it includes a column of rates.
  init(_ stats: [FunctionStats], since earlier: (stats: [FunctionStats], seconds: Double)? = nil) {
    self.stats = stats
    perSecond = earlier.map { earlier in
      let before = Dictionary(earlier.stats.map { ($0.name, $0.invocations) }) { first, _ in first }
      return Dictionary(
        stats.map { function in
          let count = max(0, function.invocations - (before[function.name] ?? 0))
          return (function.name, Double(count) / earlier.seconds)
        }
      ) { first, _ in first }
    }
  }

  /// The table, with the busiest functions first if rates are known.
  var text: String {
    let rates = perSecond ?? [:]
    let rows = stats.sorted {
      let (first, second) = (rates[$0.name] ?? 0, rates[$1.name] ?? 0)
      guard first == second else { return first > second }
      guard perSecond == nil || $0.invocations == $1.invocations else {
        return $0.invocations > $1.invocations
      }
      return $0.name < $1.name
    }
    var heads = ["FUNCTION", "RUNS", "REFUSED", "FAILED", "P50", "P99", "RUNNING", "WAITING"]
    heads += ["WORKERS", "CRASHES", "PENDING", "OLDEST", "NOTE"]
    if perSecond != nil { heads.insert("RUNS/S", at: 2) }
    return Terminal.table(heads, rows.map(row))
  }

  private func row(_ function: FunctionStats) -> [String] {
    let failed = ["failed", "crashed", "timedOut"].reduce(0) { $0 + (function.outcomes[$1] ?? 0) }
    var row = [
      function.name, "\(function.invocations)", "\(function.outcomes["refused"] ?? 0)",
      "\(failed)", Self.bound(function.p50Seconds),
      Self.bound(function.p99Seconds), "\(function.running)", "\(function.waiting)",
      "\(function.workers)", "\(function.workerCrashes)", "\(function.pending)",
      function.oldestSeconds.map(Self.age) ?? "", Self.note(on: function),
    ]
    if let perSecond { row.insert("\(Int((perSecond[function.name] ?? 0).rounded()))", at: 2) }
    return row
  }

  /// Returns the reason why a function's events wait or it has too few workers, in one line.
  private static func note(on function: FunctionStats) -> String {
    let text = function.waits ?? function.shortage ?? ""
    return text.split(separator: "\n").first.map(String.init) ?? ""
  }

  /// Formats a duration of which only an upper bound is known.
  private static func bound(_ seconds: Double?) -> String {
    seconds.map { "≤ \($0 < 1 ? "\(($0 * 1e4).rounded() / 10) ms" : "\($0) s")" } ?? ""
  }

  private static func age(_ seconds: Double) -> String {
    seconds < 120 ? "\(Int(seconds)) s" : "\(Int(seconds / 60)) min"
  }
}
