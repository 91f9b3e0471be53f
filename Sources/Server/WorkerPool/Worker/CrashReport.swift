/// A parser that condenses the report that Swift's runtime writes to stderr on a crash.
///
/// The report is a page of addresses and runtime frames. Only the reason and the frames in the
/// function's own code are useful. Lines outside a report pass unchanged.
struct CrashReport {
  /// The way a line of stderr is handled.
  enum Verdict: Equatable {
    /// The line is not part of a report.
    case passes
    /// The line is part of a report and is withheld.
    case taken
    /// The line ends the report; the value is a summary of the report, in lines.
    case complete(String)
  }

  /// The maximum number of frames shown; deeper stacks are rarely read.
  private static let framesMax = 8
  /// The length of the inspected part of a line, enough for long names of generic types.
  static let lineBytesMax = 8 << 10
  /// The maximum number of lines in a report; after that the report is cut off.
  private static let linesMax = 400

  private var isOpen = false
  private var lines = 0
  private var reason = ""
  private var frames: [String] = []
  /// The name of the frame that crashed, if optimization has left it without a location.
  private var crashedFrame: String?
  private var isInRuntime = false

  /// True if a line, or the beginning of one, starts a report.
  static func begins(_ line: [UInt8]) -> Bool {
    line.starts(with: "*** ".utf8) && begins(String(decoding: line, as: UTF8.self))
  }

  /// Returns the reason of the crash that the first line of a report names.
  static func detail(of line: [UInt8]) -> String {
    let text = String(decoding: line.prefix(lineBytesMax), as: UTF8.self)
    let signal = text.firstRange(of: "Signal ").map {
      text[$0.upperBound...].prefix { $0.isNumber }
    }
    guard let signal, !signal.isEmpty else { return "it crashed; its report is in the log" }
    return "it was ended by signal \(signal)"
  }

  // Example: "*** Signal 4: Backtracing from 0x7f…". The line ends seconds later, with the report.
  private static func begins(_ line: String) -> Bool {
    line.hasPrefix("*** ") && line.contains("acktracing from 0x")
  }

  /// Processes a line of stderr.
  mutating func take(_ line: String) -> Verdict {
    if !isOpen {
      guard Self.begins(line) else { return .passes }
      self = CrashReport()
      isOpen = true
      return .taken
    }
    lines += 1
    if line.hasPrefix("Backtrace took ") || lines == Self.linesMax { return .complete(finish()) }
    if let crash = line.firstRange(of: "rogram crashed: ") {
      reason = line[crash.upperBound...].prefix { $0 != "*" }.trimmingSuffix(" ")
    } else {
      takeFrame(line)
    }
    return .taken
  }

  /// Returns a summary of an unfinished report, because no more lines will follow.
  ///
  /// Nil if no report has begun or it contains nothing useful.
  mutating func end() -> String? {
    isOpen && !(reason.isEmpty && frames.isEmpty) ? finish() : nil
  }

  /// Keeps frames with a source location, up to the frame where the runtime called the function.
  ///
  /// Traps of optimized code, such as an index out of range, have none. If there are no other
  /// frames, the name of that frame is kept.
  private mutating func takeFrame(_ line: String) {
    guard let place = line.ranges(of: " at /").last, let address = line.firstRange(of: " 0x"),
      !line.contains("[thunk]"), !isInRuntime, frames.count < Self.framesMax
    else { return }
    let file = line[line.index(place.lowerBound, offsetBy: 4)...]
    if file.contains("/FunctionsRuntime/") {
      isInRuntime = true
      return
    }
    // "  1 [ra]  0x000055ae closure #1 in SampleCallables.crash.getter + 116 in functions at …"
    let symbol = line[address.upperBound..<place.lowerBound].drop { $0 != " " }.dropFirst()
    let inImage = symbol.ranges(of: " in ").last.map { symbol[..<$0.lowerBound] } ?? symbol
    let name = inImage.firstRange(of: " + ").map { inImage[..<$0.lowerBound] } ?? inImage
    if line.contains("<compiler-generated>") {
      crashedFrame = crashedFrame ?? "in \(name)"
    } else {
      frames.append("at \(file) in \(name)")
    }
  }

  private mutating func finish() -> String {
    isOpen = false
    let head = "Crashed\(reason.isEmpty ? "" : ": \(reason)")"
    let frames = frames.isEmpty ? [crashedFrame].compactMap(\.self) : frames
    return ([head] + frames).joined(separator: "\n")
  }
}

extension StringProtocol {
  fileprivate func trimmingSuffix(_ suffix: Character) -> String {
    var text = String(self)
    while text.last == suffix { text.removeLast() }
    return text
  }
}
