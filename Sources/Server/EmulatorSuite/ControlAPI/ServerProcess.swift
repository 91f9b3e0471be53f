import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What the server itself uses of the machine.
enum ServerProcess {
  /// The time that its threads have run.
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

  /// When it started, in seconds since 1970; nil where there is no `/proc`.
  static var startTime: Double? {
    // The name of the program, in parentheses, may contain spaces.
    guard let stat = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
      let uptime = try? String(contentsOfFile: "/proc/uptime", encoding: .utf8),
      let sinceBoot = uptime.split(separator: " ").first.flatMap({ Double($0) }),
      let fields = stat.split(separator: ")").last?.split(separator: " "), fields.count > 19,
      let ticks = Double(fields[19])
    else { return nil }
    return Date().timeIntervalSince1970 - sinceBoot + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
  }

  /// Its resident memory; nil where there is no `/proc`.
  static var residentBytes: Int? {
    let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    guard let pages = text?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
      return nil
    }
    return pages * Int(sysconf(CInt(_SC_PAGESIZE)))
  }

  /// Its open files and sockets; nil where there is no `/proc`.
  static var openFiles: Int? {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count
  }
}
