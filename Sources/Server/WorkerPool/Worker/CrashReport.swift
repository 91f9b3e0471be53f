/// Gathers the report that Swift's runtime writes to stderr when a process crashes.
///
/// The report is a page of addresses and frames of the runtime library; only the reason and its
/// place in the function's own code are helpful. Lines outside a report pass untouched.
struct CrashReport {
  /// What happens to a line.
  enum Verdict: Equatable {
    /// The line is not part of a report.
    case passes
    /// The line was taken in.
    case taken
    /// The report has ended with this line; the value is its essence, in lines.
    case complete(String)
  }

  /// The frames shown; a deeper stack is rarely read.
  private static let framesMax = 8
  /// The part of a line that is looked at; names of generic types are long, but not longer.
  static let lineBytesMax = 8 << 10
  /// The longest report; more lines are not a report.
  private static let linesMax = 400

  private var isOpen = false
  private var lines = 0
  private var reason = ""
  private var frames: [String] = []
  private var isInRuntime = false

  /// Whether a line, or the part of it that there is, begins a report.
  static func begins(_ line: [UInt8]) -> Bool {
    line.starts(with: "*** ".utf8) && begins(String(decoding: line, as: UTF8.self))
  }

  // "*** Signal 4: Backtracing from 0x7f…", whose line ends seconds later, with the report.
  private static func begins(_ line: String) -> Bool {
    line.hasPrefix("*** ") && line.contains("acktracing from 0x")
  }

  /// Takes the next line of stderr.
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

  /// The essence of a report that has begun but that nothing will end; nil when there is none.
  mutating func end() -> String? {
    isOpen && !(reason.isEmpty && frames.isEmpty) ? finish() : nil
  }

  /// Keeps frames with a place in source code, up to where the runtime library called the function.
  private mutating func takeFrame(_ line: String) {
    guard let place = line.ranges(of: " at /").last, !line.contains("<compiler-generated>"),
      !isInRuntime, frames.count < Self.framesMax
    else { return }
    let file = line[line.index(place.lowerBound, offsetBy: 4)...]
    if file.contains("/FunctionsRuntime/") {
      isInRuntime = true
      return
    }
    // "  1 [ra]  0x000055ae closure #1 in SampleCallables.crash.getter + 116 in functions at …"
    guard let address = line.firstRange(of: " 0x") else { return }
    let symbol = line[address.upperBound..<place.lowerBound].drop { $0 != " " }.dropFirst()
    let inImage = symbol.ranges(of: " in ").last.map { symbol[..<$0.lowerBound] } ?? symbol
    let name = inImage.firstRange(of: " + ").map { inImage[..<$0.lowerBound] } ?? inImage
    frames.append("at \(file) in \(name)")
  }

  private mutating func finish() -> String {
    isOpen = false
    let head = "Crashed\(reason.isEmpty ? "" : ": \(reason)")"
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
