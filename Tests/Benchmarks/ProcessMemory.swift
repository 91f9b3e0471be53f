import Foundation

/// What processes hold in memory, as Linux tells it.
enum ProcessMemory {
  /// The resident megabytes of a process, or nil where there is no `/proc`.
  static func megabytes(_ processID: Int32) -> Double? {
    guard let kilobytes = SystemProcesses.process(processID).field("VmRSS:") else { return nil }
    return Double(kilobytes) / 1024
  }

  /// The same of the largest process in a group; launchers do not count.
  static func largestInGroup(_ groupID: Int32) -> Double? {
    SystemProcesses.all().filter { getpgid($0) == groupID }.compactMap(megabytes).max()
  }

  /// The megabytes of all children of a process together, what they share counted once.
  static func children(of processID: Int32) -> (megabytes: Double, count: Int)? {
    let sizes = SystemProcesses.children(of: processID).compactMap {
      SystemProcesses.process($0).field("Pss:", in: "smaps_rollup")
    }
    guard !sizes.isEmpty else { return nil }
    return (Double(sizes.reduce(0, +)) / 1024, sizes.count)
  }
}
