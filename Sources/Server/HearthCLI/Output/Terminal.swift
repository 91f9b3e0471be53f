import Dispatch
import Foundation
import FunctionLogs
import LibC
import Logging
import Synchronization

/// The output of this process for a person: results on stdout, the rest on stderr.
///
/// Everything that this process prints goes through this type. It escapes characters that could
/// control a terminal, because names, paths and messages may come from untrusted sources.
enum Terminal {
  /// Prints a result of one or more lines.
  static func print(_ text: String) { write(TerminalText(lines: text), to: STDOUT_FILENO) }

  /// Prints a result on one line; line breaks in the text are escaped.
  static func printLine(_ text: String) { write("\(text)", to: STDOUT_FILENO) }

  /// Prints a result with colors or several escaped parts.
  static func print(safe text: TerminalText) { write(text, to: STDOUT_FILENO) }

  /// Prints JSON, escaped so that it remains the same JSON.
  static func print(json: String) { write(TerminalText(json: json), to: STDOUT_FILENO) }

  /// Prints JSON, escaped so that it remains the same JSON.
  static func print(json: [UInt8]) { print(json: String(decoding: json, as: UTF8.self)) }

  /// Prints a part of a result, without a line break after it.
  ///
  /// Only for commands that have not called `serve`.
  static func print(unended text: TerminalText) {
    LineWriter.writeAll(text.text, to: STDOUT_FILENO)
  }

  /// Prints a value unchanged for a script; escapes it only on a terminal.
  static func print(value: String) {
    guard !isOutputShown else { return print(value) }
    LineWriter.writeAll(value + "\n", to: STDOUT_FILENO)
  }

  /// Clears the screen and prints text at its top.
  static func redraw(_ text: String) {
    write("\u{1B}[H\u{1B}[2J\(TerminalText(lines: text))", to: STDOUT_FILENO)
  }

  static func printError(_ text: String) { write(TerminalText(lines: text), to: STDERR_FILENO) }

  /// Prints progress or log lines to stderr.
  static func note(_ text: String) { write(TerminalText(lines: text), to: STDERR_FILENO) }

  /// Prints progress or log lines to stderr, with colors or several escaped parts.
  static func note(safe text: TerminalText) { write(text, to: STDERR_FILENO) }

  /// Prints one line of progress to stderr; on a terminal it takes the place of the line before.
  ///
  /// Only for commands that have not called `serve`, which call `endProgress` afterwards.
  static func noteProgress(_ line: String) {
    guard isInteractive else { return note(line) }
    LineWriter.writeAll("\r\u{1B}[K\(ControlCharacters.escapedLine(line))", to: STDERR_FILENO)
  }

  /// Erases a line of progress on a terminal.
  static func endProgress() {
    if isInteractive { LineWriter.writeAll("\r\u{1B}[K", to: STDERR_FILENO) }
  }

  /// True if stderr is a terminal, so that a person probably reads it.
  static let isInteractive = isatty(STDERR_FILENO) == 1

  /// True if stdout is a terminal, so that a person probably reads it.
  static let isOutputShown = isatty(STDOUT_FILENO) == 1

  /// True if colors are used; `NO_COLOR` turns them off, as in other tools.
  static let isColored = isInteractive && !isSet("NO_COLOR")

  private static func isSet(_ variable: String) -> Bool {
    getenv(variable).map { $0[0] != 0 } ?? false
  }

  /// Returns escaped text in a color, if colors are used.
  static func paint(_ text: String, _ color: Color) -> TerminalText {
    let text = TerminalText(lines: text)
    return isColored ? text.painted(color) : text
  }

  enum Color: Int {
    case red = 31
    case green = 32
    case yellow = 33
    case cyan = 36
    case dim = 2
    case bold = 1
  }

  /// Formats rows in aligned columns, two spaces apart; the last column is not padded.
  ///
  /// Each row takes one line; line breaks in cells are escaped.
  static func table(_ header: [String], _ rows: [[String]]) -> String {
    let all = ([header] + rows).map { $0.map(ControlCharacters.escapedLine) }
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      row.enumerated().map { column, cell in
        column == row.count - 1
          ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  // MARK: - Writing

  private struct Writers {
    var output: LineWriter
    var errors: LineWriter
  }

  /// The writers of a process that has called `serve`; nil in all other commands.
  private static let writers = Mutex<Writers?>(nil)

  /// Makes all further output asynchronous, so that it never waits for a reader.
  ///
  /// For commands that run a suite. The others wait for their readers, as programs in a pipe
  /// should.
  static func serve(logFormat: LogFormat) {
    // A closed reader must not end the suite.
    signal(SIGPIPE, SIG_IGN)
    let writers = Writers(
      output: LineWriter(to: STDOUT_FILENO) {
        "(\($0) results were dropped because they were not read.)"
      },
      errors: LineWriter(to: STDERR_FILENO) { count in
        let message = "\(count) log lines were dropped because they were not read"
        return LogLine(service: "hearth", level: .warning, message: message)
          .formatted(logFormat).text
      }
    )
    self.writers.withLock { $0 = $0 ?? writers }
  }

  /// Gives readers a short time to receive pending output; to be called before the process ends.
  static func flush() {
    guard let writers = writers.withLock({ $0 }) else { return }
    let deadline = DispatchTime.now() + flushTimeMax
    writers.errors.flush(until: deadline)
    writers.output.flush(until: deadline)
  }

  /// The time that the end of the process waits for its readers.
  ///
  /// A stop must be quick even if no one reads the output. An active reader needs less time.
  private static let flushTimeMax = DispatchTimeInterval.milliseconds(300)

  private static func write(_ text: TerminalText, to descriptor: Int32) {
    guard let writers = writers.withLock({ $0 }) else {
      return LineWriter.writeAll(text.text + "\n", to: descriptor)
    }
    (descriptor == STDOUT_FILENO ? writers.output : writers.errors).write(text.text)
  }
}
