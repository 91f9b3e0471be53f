import ArgumentParser
import EmulatorSuite
import Foundation
import FunctionLogs
import Identifiers
import JSONText
import Logging

/// `hearth logs`, also `hearth functions logs`: prints the log lines of functions.
struct Logs: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print what functions logged and how they ended, oldest first.",
    usage: "hearth logs [<name>] [--since <time|duration>] [--follow] [<options>]",
    discussion: """
      Also called `hearth functions logs`. Lines are kept across restarts; --since takes a time \
      such as 2026-11-21T07:00:00Z, or how long ago: 30s, 10m, 2h, 1d. Times are UTC; lines of \
      another day have their date, too. Crashes are lines of level error, with the places in the \
      code that led there. Each invocation adds a line with its outcome, its time and its caller; \
      --quiet leaves these lines out.

        hearth logs --follow
        hearth logs welcome --level warning --since 10m
        hearth logs --quiet --follow
        hearth logs --function welcome --json | jq .message
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Argument(help: "The function's name; all functions when left out.")
  var name: String?

  @Option(name: .customLong("function"), help: "Only this function, as the argument.")
  var function: String?

  @Option(help: "Only this level and graver ones: debug, info, notice, warning, error …")
  var level: String?

  @Option(help: ArgumentHelp("Only lines since then.", valueName: "time|duration"))
  var since: String?

  @Option(help: "At most so many lines of the past.")
  var limit = 200

  @Flag(help: "Continue with new lines as they come.")
  var follow = false

  @Flag(help: "Leave out the lines about ended invocations.")
  var quiet = false

  @Flag(help: "Print each line as a JSON object.")
  var json = false

  func validate() throws {
    if let name, let function, name != function {
      throw ValidationError("\(name) and --function \(function) are two functions; give one.")
    }
    if let level, Logger.Level(rawValue: level) == nil {
      let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      let question = NearestName.question(level, among: Logger.Level.allCases.map(\.rawValue))
      throw ValidationError("\"\(level)\" is not a level.\(question) The levels are \(names).")
    }
    if let since, Self.time(since, now: Date()) == nil {
      throw ValidationError("--since is a time such as 2026-11-21T07:00:00Z, or 30s, 10m, 2h, 1d.")
    }
    guard (0...10_000).contains(limit) else {
      throw ValidationError("--limit is \(limit); give 0 to 10000.")
    }
  }

  func run() async throws {
    let client = try await suite.connect()
    var query = "?limit=\(limit)&follow=\(follow)"
    let name = self.name ?? function
    if quiet { query += "&quiet=true" }
    if let name { query += "&function=\(name.percentEncoded)" }
    if let level { query += "&level=\(level)" }
    if let time = since.flatMap({ Self.time($0, now: Date()) }) {
      query += "&since=\(time.percentEncoded)"
    }
    if follow, let name {
      let functions = try await FunctionNames(client)
      // The name of a function that is yet to be deployed may be right.
      if !functions.contains(name) { Terminal.note(functions.unknown(name).message) }
    }
    var isEmpty = true
    try await client.lines("GET", "/hearth/v1/logs\(query)") { line in
      isEmpty = false
      guard !json else { return Terminal.print(json: line) }
      let entry = try FunctionLogEntry(decodingJSON: line.utf8)
      // The log's times are UTC, and so is the day.
      let today = String(Date().formatted(.iso8601).prefix(10))
      Terminal.print(safe: LogLine(entry).text(colored: false, today: today))
    }
    guard isEmpty else { return }
    // No line was found; the name may be wrong, or the function has not logged anything.
    if let name {
      try await FunctionNames(client).check([name])
    }
    guard !json else { return }
    let isChosen = level != nil || since != nil || quiet
    Terminal.note(
      isChosen ? "No such lines." : name.map { "\($0) has logged nothing." } ?? "No log lines."
    )
  }

  /// Returns a time in RFC 3339 for a time or an age such as `10m`; nil for any other text.
  static func time(_ text: String, now: Date) -> String? {
    if let seconds = TimeSpan.seconds(text) { return (now - seconds).formatted(.iso8601) }
    // These are the only formats that the suite accepts.
    let withFraction = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    let date = (try? Date(text, strategy: .iso8601)) ?? (try? Date(text, strategy: withFraction))
    return date == nil ? nil : text
  }
}
