import Dispatch
import Foundation
import Logging
import RuntimeSupport
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The output for a person: results on stdout, the rest on stderr.
///
/// Everything that this process prints goes through here, and what could steer a terminal is
/// written out on the way: names, paths and messages are chosen by others.
enum Terminal {
  /// Prints a result of one or more lines.
  static func print(_ text: String) { write(TerminalText(lines: text), to: STDOUT_FILENO) }

  /// Prints a result of one line, whatever the text holds.
  static func printLine(_ text: String) { write("\(text)", to: STDOUT_FILENO) }

  /// Prints a result with colors or several escaped parts.
  static func print(safe text: TerminalText) { write(text, to: STDOUT_FILENO) }

  /// Prints JSON, which stays JSON.
  static func print(json: String) { write(TerminalText(json: json), to: STDOUT_FILENO) }

  /// Prints JSON, which stays JSON.
  static func print(json: [UInt8]) { print(json: String(decoding: json, as: UTF8.self)) }

  /// Prints a part of a result, without a line's end after it.
  ///
  /// For commands that do not serve.
  static func print(unended text: TerminalText) {
    LineWriter.writeAll(text.text, to: STDOUT_FILENO)
  }

  /// Prints a value for a script as it is; only on a terminal it is escaped.
  static func print(value: String) {
    guard !isOutputShown else { return print(value) }
    LineWriter.writeAll(value + "\n", to: STDOUT_FILENO)
  }

  /// Clears the screen and prints a text at its top.
  static func redraw(_ text: String) {
    write("\u{1B}[H\u{1B}[2J\(TerminalText(lines: text))", to: STDOUT_FILENO)
  }

  /// Prints an error in one piece, without a stack of causes.
  static func printError(_ text: String) { write(TerminalText(lines: text), to: STDERR_FILENO) }

  /// Prints progress and logs.
  static func note(_ text: String) { write(TerminalText(lines: text), to: STDERR_FILENO) }

  /// Prints progress and logs, with colors or several escaped parts.
  static func note(safe text: TerminalText) { write(text, to: STDERR_FILENO) }

  /// Whether a person is likely to read stderr as it comes.
  static let isInteractive = isatty(STDERR_FILENO) == 1

  /// Whether a person is likely to read stdout as it comes.
  static let isOutputShown = isatty(STDOUT_FILENO) == 1

  /// Whether to use colour; `NO_COLOR` turns it off, as in other tools.
  static let isColoured = isInteractive && !isSet("NO_COLOR")

  private static func isSet(_ variable: String) -> Bool {
    getenv(variable).map { $0[0] != 0 } ?? false
  }

  /// Text in a colour, if colours are on.
  static func paint(_ text: String, _ colour: Colour) -> TerminalText {
    let text = TerminalText(lines: text)
    return isColoured ? text.painted(colour) : text
  }

  /// The few colours in use.
  enum Colour: Int {
    case red = 31
    case green = 32
    case yellow = 33
    case cyan = 36
    case dim = 2
    case bold = 1
  }

  /// Rows in aligned columns, two spaces apart; the last column is not padded.
  ///
  /// Each row is one line, whatever its cells hold.
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

  /// The writers of a process that serves; nil in a command that only prints its result.
  private static let writers = Mutex<Writers?>(nil)

  /// From now on nothing waits for the readers of stdout and stderr.
  ///
  /// For the commands that serve. The others wait for their readers, as programs in a pipe should.
  static func serve(logFormat: LogFormat) {
    // A reader that has gone must not end the suite.
    signal(SIGPIPE, SIG_IGN)
    let writers = Writers(
      output: LineWriter(to: STDOUT_FILENO) {
        "(\($0) results were dropped because nobody read them.)"
      },
      errors: LineWriter(to: STDERR_FILENO) { count in
        let message = "\(count) log lines were dropped because nobody read them"
        return LogLine(service: "hearth", level: .warning, message: message)
          .formatted(logFormat).text
      }
    )
    self.writers.withLock { $0 = $0 ?? writers }
  }

  /// Gives readers a moment to take what is still to be written; call it before the process ends.
  static func flush() {
    guard let writers = writers.withLock({ $0 }) else { return }
    let deadline = DispatchTime.now() + flushTimeMax
    writers.errors.flush(until: deadline)
    writers.output.flush(until: deadline)
  }

  /// How long the end of the process waits for its readers: a stop has to be quick even when nobody
  /// reads, and a reader needs less.
  private static let flushTimeMax = DispatchTimeInterval.milliseconds(300)

  private static func write(_ text: TerminalText, to descriptor: Int32) {
    guard let writers = writers.withLock({ $0 }) else {
      return LineWriter.writeAll(text.text + "\n", to: descriptor)
    }
    (descriptor == STDOUT_FILENO ? writers.output : writers.errors).write(text.text)
  }
}
