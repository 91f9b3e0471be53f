import Foundation
import LibC

/// The server's own use of the machine's resources.
enum ServerProcess {
  /// The processor time of all threads, in seconds.
  static var processorSeconds: Double {
    var usage = rusage()
    #if canImport(Glibc)
      _ = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    #else
      _ = getrusage(RUSAGE_SELF, &usage)
    #endif
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// The start time in seconds since 1970; nil if the system does not tell.
  static var startTime: Double? {
    #if canImport(Darwin)
      var process = proc_bsdinfo()
      let size = Int32(MemoryLayout<proc_bsdinfo>.size)
      guard proc_pidinfo(getpid(), PROC_PIDTBSDINFO, 0, &process, size) == size else { return nil }
      return Double(process.pbi_start_tvsec) + Double(process.pbi_start_tvusec) / 1e6
    #else
      // The program's name, in parentheses, may contain spaces.
      guard let stat = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
        let uptime = try? String(contentsOfFile: "/proc/uptime", encoding: .utf8),
        let sinceBoot = uptime.split(separator: " ").first.flatMap({ Double($0) }),
        let fields = stat.split(separator: ")").last?.split(separator: " "), fields.count > 19,
        let ticks = Double(fields[19])
      else { return nil }
      return Date().timeIntervalSince1970 - sinceBoot + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
    #endif
  }

  /// The resident memory in bytes; nil if the system does not tell.
  static var residentBytes: Int? {
    #if canImport(Darwin)
      var task = proc_taskinfo()
      let size = Int32(MemoryLayout<proc_taskinfo>.size)
      guard proc_pidinfo(getpid(), PROC_PIDTASKINFO, 0, &task, size) == size else { return nil }
      return Int(task.pti_resident_size)
    #else
      // Without /proc the system does not tell.
      let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      guard let pages = text?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
        return nil
      }
      return pages * Int(sysconf(CInt(_SC_PAGESIZE)))
    #endif
  }

  /// The number of open files and sockets; nil if the system does not tell.
  static var openFiles: Int? {
    #if canImport(Darwin)
      let folder = "/dev/fd"
    #else
      let folder = "/proc/self/fd"
    #endif
    // Without this folder the system does not tell.
    return (try? FileManager.default.contentsOfDirectory(atPath: folder))?.count
  }
}
