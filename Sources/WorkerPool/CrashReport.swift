/// Gathers the report that Swift's runtime writes to stderr when a process crashes.
///
/// The report is a page of addresses and frames of the runtime library; what helps is the reason
/// and where in the function's own code it happened. Lines outside a report pass untouched.
struct CrashReport {
  /// What became of a line.
  enum Verdict: Equatable {
    /// The line is no part of a report.
    case passes
    /// The line was taken in.
    case taken
    /// The report has ended with this line; its essence, in lines.
    case complete(String)
  }

  /// Frames that are shown; a deeper stack is rarely read.
  private static let framesMax = 8
  /// A report that goes on for longer is not one.
  private static let linesMax = 400

  private var isOpen = false
  private var lines = 0
  private var reason = ""
  private var frames: [String] = []
  private var isInRuntime = false

  /// Takes the next line of stderr.
  mutating func take(_ line: String) -> Verdict {
    if !isOpen {
      // "*** Signal 4: Backtracing from 0x7f…", written before the frames are looked up.
      guard line.hasPrefix("*** "), line.contains("acktracing from 0x") else { return .passes }
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

  /// The essence of a report that has begun and that nothing ends any more, or nil.
  mutating func end() -> String? {
    isOpen ? finish() : nil
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
