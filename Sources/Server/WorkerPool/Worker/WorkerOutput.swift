import FlowControl
import FunctionLogs
import JSONText

/// A converter of a worker's output lines to log entries, which drops lines that come too fast.
struct WorkerOutput {
  /// A log entry without its time and function.
  struct Entry: Equatable {
    var level: String
    var message: String
    var invocation: String?
    var trace: String?
    var metadata: [String: String] = [:]
  }

  /// The number of lines kept to explain a failed start.
  static let tailMax = 20
  /// The maximum size of the kept lines, in bytes.
  ///
  /// It is small because every worker keeps lines, and the error of a failed start repeats them.
  static let tailBytesMax = 16 << 10

  private static let flushWait = Duration.seconds(1)

  private var limiter: OutputLimiter
  private var tailLines = RecentElements<String>(
    countMax: Self.tailMax,
    bytesMax: Self.tailBytesMax
  )
  private var crash = CrashReport()

  init(_ configuration: WorkerFleet.Configuration) {
    limiter = OutputLimiter(
      lines: .init(perSecond: configuration.linesPerSecond, burst: configuration.linesBurst),
      bytes: .init(perSecond: configuration.logBytesPerSecond, burst: configuration.logBytesBurst)
    )
  }

  /// The last lines of output, oldest first.
  var tail: [String] { Array(tailLines) }

  /// Returns the log entries for a line; empty if the line is dropped.
  ///
  /// Blank lines are left out. A crash report is returned as one entry, with its last line.
  mutating func take(_ line: LineSplitter.Line, isError: Bool, now: Duration) -> [Entry] {
    var entries: [Entry] = []
    if line.bytesDropped > 0 {
      let amount = Self.amount(line.bytesDropped)
      entries.append(
        Entry(level: "warning", message: "… \(amount) more of that line were dropped.")
      )
      return entries
    }
    guard line.bytes.contains(where: { $0 != UInt8(ascii: " ") }) else { return [] }
    if isError {
      let text = String(decoding: line.bytes.prefix(CrashReport.lineBytesMax), as: UTF8.self)
      switch crash.take(text) {
      case .passes: break
      case .taken: return []
      case .complete(let report): return [keptInTail(Entry(level: "error", message: report))]
      }
    }
    switch limiter.judge(bytes: line.bytes.count, now: now) {
    case .drop: return []
    case .passAfter(let dropped): entries.append(Self.entry(dropped))
    case .pass: break
    }
    return entries + [keptInTail(Self.entry(line, isError: isError))]
  }

  /// Returns the final entries: a count of dropped lines and an unfinished crash report.
  mutating func finish() -> [Entry] {
    dropped() + (crash.end().map { [keptInTail(Entry(level: "error", message: $0))] } ?? [])
  }

  /// Returns a count of dropped lines if no line has come for a while that could report them.
  mutating func flush(now: Duration) -> [Entry] {
    now - limiter.last < Self.flushWait ? [] : dropped()
  }

  private mutating func dropped() -> [Entry] {
    limiter.takeDropped().map { [Self.entry($0)] } ?? []
  }

  private static func entry(_ dropped: OutputLimiter.Dropped) -> Entry {
    let amount = amount(dropped.bytes)
    return Entry(
      level: "warning",
      message: "\(dropped.lines) lines too many (\(amount)) were dropped; log less."
    )
  }

  private static func amount(_ bytes: Int) -> String {
    bytes < 1 << 20 ? "\(bytes) bytes" : MemoryWatch.text(bytes)
  }

  /// Adds an entry's message to the tail; returns the entry.
  private mutating func keptInTail(_ entry: Entry) -> Entry {
    let line = String(decoding: entry.message.utf8.prefix(Self.tailBytesMax / 2), as: UTF8.self)
    tailLines.append(line, bytes: line.utf8.count)
    return entry
  }

  private static func entry(_ line: LineSplitter.Line, isError: Bool) -> Entry {
    // A line that begins with a brace but is not a `WorkerLogLine` is the function's own output.
    if !isError, line.bytes.first == UInt8(ascii: "{"),
      let logLine = try? WorkerLogLine(decodingJSON: line.bytes)
    {
      return Entry(
        level: logLine.severity.lowercased(),
        message: logLine.message,
        invocation: logLine.executionID,
        trace: logLine.trace,
        metadata: logLine.metadata ?? [:]
      )
    }
    let text = String(decoding: line.bytes, as: UTF8.self)
    let isFatal = isError && text.contains("Fatal error: ")
    return Entry(
      level: isFatal ? "error" : isError ? "warning" : "info",
      message: line.isCut ? text + " … (cut)" : text
    )
  }
}
