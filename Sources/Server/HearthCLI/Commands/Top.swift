import ArgumentParser
import EmulatorSuite
import Foundation
import LibC

/// `hearth top`: shows the functions' figures, refreshed every second.
struct Top: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show what the functions are doing, again each second.",
    discussion: """
        hearth top
        hearth top --every 5

      Functions with the most invocations a second come first. Ctrl-C ends it; without a terminal it \
      prints one table and ends.
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Option(help: "Seconds between looks.")
  var every = 1.0

  func validate() throws {
    guard every >= 0.1, every <= 3600 else {
      throw ValidationError("--every is \(every); give 0.1 to 3600 seconds.")
    }
  }

  /// Returns the part of a table that fits on the terminal.
  private static func cropped(_ table: String) -> String {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 1, size.ws_col > 0
    else { return table }
    return table.split(separator: "\n").prefix(Int(size.ws_row) - 1)
      .map { $0.prefix(Int(size.ws_col)) }.joined(separator: "\n")
  }

  func run() async throws {
    let client = try await suite.connect()
    var earlier: (stats: [FunctionStats], time: ContinuousClock.Instant)?
    let isTerminal = isatty(STDOUT_FILENO) != 0
    while true {
      let stats = try await client.get("/hearth/v1/functions/stats", as: [FunctionStats].self)
      let now = ContinuousClock.now
      if let earlier {
        let seconds = (now - earlier.time) / .seconds(1)
        let table = FunctionTable(stats, since: (earlier.stats, seconds)).text
        guard isTerminal else { return Terminal.print(table) }
        Terminal.redraw(Self.cropped(table))
      }
      earlier = (stats, now)
      try await Task.sleep(for: .seconds(every))
    }
  }
}
