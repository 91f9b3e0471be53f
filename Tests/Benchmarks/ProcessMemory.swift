import Foundation

/// What processes hold in memory, as Linux tells it.
enum ProcessMemory {
  /// The resident megabytes of a process, or nil where there is no `/proc`.
  static func megabytes(_ processID: Int32) -> Double? {
    guard let kilobytes = field("VmRSS:", of: processID) else { return nil }
    return Double(kilobytes) / 1024
  }

  /// The same of the largest process in a group; launchers do not count.
  static func largestInGroup(_ groupID: Int32) -> Double? {
    processes().filter { getpgid($0) == groupID }.compactMap(megabytes).max()
  }

  /// The megabytes of all children of a process together, what they share counted once.
  static func children(of processID: Int32) -> (megabytes: Double, count: Int)? {
    let sizes = processes().filter { field("PPid:", of: $0) == Int(processID) }
      .compactMap { field("Pss:", of: $0, in: "smaps_rollup") }
    guard !sizes.isEmpty else { return nil }
    return (Double(sizes.reduce(0, +)) / 1024, sizes.count)
  }

  private static func processes() -> [Int32] {
    // Where there is no such folder, there is nothing to tell.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { Int32($0) }
  }

  private static func field(_ name: String, of processID: Int32, in file: String = "status") -> Int?
  {
    // A process may end at any time; then it holds nothing.
    let text = try? String(contentsOfFile: "/proc/\(processID)/\(file)", encoding: .utf8)
    let line = text?.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
  }
}
