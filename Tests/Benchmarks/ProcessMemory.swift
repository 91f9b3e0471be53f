import Foundation

/// The memory use of processes, as Linux reports it.
enum ProcessMemory {
  /// Returns the resident megabytes of a process; nil if there is no `/proc`.
  static func megabytes(_ processID: Int32) -> Double? {
    guard let kilobytes = SystemProcesses.process(processID).field("VmRSS:") else { return nil }
    return Double(kilobytes) / 1024
  }

  /// Returns the most resident megabytes that a process ever had; nil if there is no `/proc`.
  static func peak(_ processID: Int32) -> Double? {
    guard let kilobytes = SystemProcesses.process(processID).field("VmHWM:") else { return nil }
    return Double(kilobytes) / 1024
  }

  /// Returns the peak of the process in a group that had the largest one.
  static func peakOfLargestInGroup(_ groupID: Int32) -> Double? {
    SystemProcesses.all().filter { getpgid($0) == groupID }.compactMap(peak).max()
  }

  /// Returns the resident megabytes of the largest process in a group, which is not the launcher.
  static func largestInGroup(_ groupID: Int32) -> Double? {
    SystemProcesses.all().filter { getpgid($0) == groupID }.compactMap(megabytes).max()
  }

  /// Returns the megabytes of all children of a process, counting shared memory once.
  static func children(of processID: Int32) -> (megabytes: Double, count: Int)? {
    let sizes = SystemProcesses.children(of: processID).compactMap {
      SystemProcesses.process($0).field("Pss:", in: "smaps_rollup")
    }
    guard !sizes.isEmpty else { return nil }
    return (Double(sizes.reduce(0, +)) / 1024, sizes.count)
  }
}
