#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The output for a person: results on stdout, the rest on stderr.
enum Terminal {
  /// Prints a result.
  static func print(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

  /// Prints an error in one piece, without a stack of causes.
  static func printError(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

  /// Prints progress and logs.
  static func note(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

  /// Whether a person is likely to read stderr as it comes.
  static let isInteractive = isatty(STDERR_FILENO) == 1

  /// Whether to use colour; `NO_COLOR` turns it off, as in other tools.
  static let isColoured = isInteractive && !isSet("NO_COLOR")

  private static func isSet(_ variable: String) -> Bool {
    getenv(variable).map { $0[0] != 0 } ?? false
  }

  /// Text in a colour, if colours are on.
  static func paint(_ text: String, _ colour: Colour) -> String {
    isColoured ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
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
  static func table(_ header: [String], _ rows: [[String]]) -> String {
    let all = [header] + rows
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      row.enumerated().map { column, cell in
        column == row.count - 1
          ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  /// One `write` per line, so that lines of several tasks do not mix.
  private static func write(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = bytes.withUnsafeBytes { buffer in
        #if canImport(Darwin)
          Darwin.write(descriptor, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
          Musl.write(descriptor, buffer.baseAddress, buffer.count)
        #else
          Glibc.write(descriptor, buffer.baseAddress, buffer.count)
        #endif
      }
      if written < 0 {
        if errno == EINTR || errno == EAGAIN { continue }
        return
      }
      bytes = bytes.dropFirst(written)
    }
  }
}
