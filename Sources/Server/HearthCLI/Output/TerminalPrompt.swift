import LibC
import Synchronization

/// A question for a value of one line, which a person types at the terminal.
enum TerminalPrompt {
  /// True if a person can answer: standard input is a terminal.
  static var isPossible: Bool { isatty(STDIN_FILENO) == 1 }

  /// Asks for the value of a name on stderr, and returns the line that was entered.
  ///
  /// A hidden line is not shown while it is typed. The terminal is as it was before when this
  /// returns or throws, and also when a signal ends the process. Throws `CommandError` for a line
  /// that the terminal may have cut, and for several lines at once, of which the others would
  /// otherwise go to the shell as commands.
  static func ask(for name: String, isHidden: Bool) throws -> [UInt8] {
    var before = termios()
    guard tcgetattr(STDIN_FILENO, &before) == 0 else {
      throw CommandError("The terminal cannot be read: \(String(cString: strerror(errno))).")
    }
    // From here on no signal may leave the terminal without echo.
    _ = signals
    saved.withLock { $0 = before }
    defer { restore() }
    var during = before
    during.c_lflag |= tcflag_t(ICANON) | tcflag_t(ISIG)
    if isHidden {
      // The line's end is shown, so that the next output begins on a line of its own.
      during.c_lflag = during.c_lflag & ~tcflag_t(ECHO) | tcflag_t(ECHONL)
      // A shell would get a stopped process's terminal without echo.
      withUnsafeMutableBytes(of: &during.c_cc) { $0[Int(VSUSP)] = noCharacter }
    }
    guard tcsetattr(STDIN_FILENO, TCSAFLUSH, &during) == 0 else {
      throw CommandError("The terminal cannot be set: \(String(cString: strerror(errno))).")
    }
    let hint = isHidden ? " (not shown while you type)" : ""
    LineWriter.writeAll(TerminalText(lines: "Value of \(name)\(hint): ").text, to: STDERR_FILENO)
    let line = readLine()
    guard line.count < lineBytesMax else {
      throw CommandError(
        "The line is longer than a terminal can pass on; give the value of \(name) by "
          + "standard input, as in `… < FILE`. Nothing was changed."
      )
    }
    guard !hasMoreInput else {
      throw CommandError(
        "Several lines were entered; give a value of several lines by standard input, as in "
          + "`… < FILE`. Nothing was changed."
      )
    }
    return line
  }

  /// The settings of the terminal to restore; nil while nothing is asked.
  private static let saved = Mutex<termios?>(nil)

  /// Restores the terminal at each signal that ends the process; installed at most once.
  private static let signals: Void = {
    SignalTrap.install([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) { number in
      restore()
      LineWriter.writeAll("\n", to: STDERR_FILENO)
      signal(number, SIG_DFL)
      kill(getpid(), number)
      return .ends
    }
  }()

  /// Restores the settings, and discards what was typed and not read.
  private static func restore() {
    saved.withLock { settings in
      guard var before = settings else { return }
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      settings = nil
    }
  }

  private static func readLine() -> [UInt8] {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1, byte != UInt8(ascii: "\n") else { return line }
      line.append(byte)
    }
  }

  private static var hasMoreInput: Bool {
    var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    return poll(&input, 1, 0) == 1 && input.revents & Int16(POLLIN) != 0
  }

  #if canImport(Darwin)
    private static let noCharacter: UInt8 = 0xFF
    /// The length of a line from which on the terminal drops characters (`MAX_CANON`).
    private static let lineBytesMax = 1023
  #else
    private static let noCharacter: UInt8 = 0
    /// The length of a line from which on the terminal drops characters.
    private static let lineBytesMax = 4095
  #endif
}
