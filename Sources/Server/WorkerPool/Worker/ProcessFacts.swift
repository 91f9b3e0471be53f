import LibC

/// System queries and controls for a worker's process and its descendants.
///
/// Only this type of the module calls the platform for them. On Linux it reads `/proc`. On Darwin
/// it uses `libproc`, and finds a worker's processes only by their process group.
enum ProcessFacts {
  /// Returns the memory that a process does not share with files; nil if the process is gone.
  static func memoryBytes(of process: pid_t) -> Int? {
    #if canImport(Darwin)
      var usage = rusage_info_v2()
      let status = withUnsafeMutablePointer(to: &usage) { pointer in
        pointer.withMemoryRebound(to: rusage_info_t?.self, capacity: 1) {
          proc_pid_rusage(process, RUSAGE_INFO_V2, $0)
        }
      }
      return status == 0 ? Int(usage.ri_phys_footprint) : nil
    #else
      guard let status = contents("/proc/\(process)/status") else { return nil }
      // Memory mapped from files can be reclaimed, so it does not exhaust the machine's memory.
      let kibibytes = number(after: "RssAnon:", in: status) + number(after: "RssShmem:", in: status)
      return kibibytes * 1024
    #endif
  }

  /// Returns the descendants of a process, without the process itself.
  ///
  /// Processes whose parents have ended are not found on Linux, nor are processes outside the group
  /// on Darwin.
  static func descendants(of process: pid_t) -> [pid_t] {
    var found: [pid_t] = []
    #if canImport(Darwin)
      var members: [pid_t] = Array(repeating: 0, count: descendantsMax)
      let bytes = proc_listpids(
        UInt32(PROC_PGRP_ONLY),
        UInt32(process),
        &members,
        Int32(members.count * MemoryLayout<pid_t>.size)
      )
      found = members.prefix(max(0, Int(bytes)) / MemoryLayout<pid_t>.size)
        .filter { $0 > 0 && $0 != process }
    #else
      var unasked = [process]
      while let next = unasked.popLast(), found.count < descendantsMax {
        let children = names(in: "/proc/\(next)/task").flatMap {
          numbers(contents("/proc/\(next)/task/\($0)/children") ?? [])
        }
        found += children
        unasked += children
      }
    #endif
    return found
  }

  /// Permanently lowers the scheduling priority of a session.
  ///
  /// If the system refuses, the priority is unchanged.
  static func giveWay(_ session: pid_t) {
    #if canImport(Glibc)
      _ = setpriority(__priority_which_t(PRIO_PGRP.rawValue), id_t(session), niceness)
    #else
      _ = setpriority(PRIO_PGRP, id_t(session), niceness)
    #endif
    #if !canImport(Darwin)
      // Linux may schedule whole sessions as groups, each with a niceness of its own.
      write("\(niceness)", to: "/proc/\(session)/autogroup")
    #endif
  }

  /// About half of the usual share of a busy processor.
  ///
  /// With the usual 10, a crash report beside a build takes longer than it may.
  private static let niceness: Int32 = 3

  /// True if the process has ended, even if its parent has not reaped it yet.
  static func hasExited(_ process: pid_t) -> Bool {
    var info = siginfo_t()
    guard waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 else { return true }
    return info.si_signo != 0
  }

  /// Kills all processes that inherited the variable with a value for which `isToGo` is true.
  ///
  /// This reaches processes that have left the worker's process group and session. It does not find
  /// processes that have cleared their environment, or any process on Darwin. It takes
  /// milliseconds, because it reads the environment of every process of the machine.
  static func endAll(inheriting variable: String, where isToGo: (String) -> Bool) {
    #if !canImport(Darwin)
      // Each round kills processes that were started during the previous one.
      for _ in 0..<roundsMax {
        let marked = names(in: "/proc").compactMap { pid_t($0) }.filter {
          $0 != getpid() && value(of: variable, in: $0).map(isToGo) == true
        }
        if marked.isEmpty { return }
        for process in marked { kill(process, SIGKILL) }
      }
    #endif
  }

  /// Makes the system kill this process first if the machine runs out of memory.
  static func offer(_ process: pid_t) {
    #if !canImport(Darwin)
      write("1000", to: "/proc/\(process)/oom_score_adj")
    #endif
  }

  /// The maximum number of descendants counted; a worker with more is counted only in part.
  private static let descendantsMax = 256
  private static let roundsMax = 20
}

#if !canImport(Darwin)
  extension ProcessFacts {
    /// Writes an attribute of a process; if the system refuses, the attribute is unchanged.
    private static func write(_ text: String, to path: String) {
      let descriptor = open(path, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return }
      defer { close(descriptor) }
      _ = LibC.write(descriptor, text, text.utf8.count)
    }

    private static func contents(_ path: String) -> [UInt8]? {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      defer { close(descriptor) }
      var bytes: [UInt8] = []
      withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
        while true {
          let count = read(descriptor, buffer.baseAddress, buffer.count)
          guard count > 0 else { return }
          bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
      }
      return bytes
    }

    private static func names(in folder: String) -> [String] {
      guard let stream = opendir(folder) else { return [] }
      defer { closedir(stream) }
      var names: [String] = []
      while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name.utf8.first != UInt8(ascii: ".") { names.append(name) }
      }
      return names
    }

    private static func numbers(_ text: [UInt8]) -> [pid_t] {
      text.split(whereSeparator: { $0 == 0x20 || $0 == 0x0A }).compactMap {
        pid_t(String(decoding: $0, as: UTF8.self))
      }
    }

    private static func number(after label: StaticString, in text: [UInt8]) -> Int {
      let start = label.withUTF8Buffer { label -> Int? in
        for line in text.split(separator: 0x0A) where line.starts(with: label) {
          return line.startIndex + label.count
        }
        return nil
      }
      guard let start else { return 0 }
      let digits = text[start...].drop { $0 == 0x20 || $0 == 0x09 }.prefix { 48...57 ~= $0 }
      return digits.reduce(0) { $0 * 10 + Int($1 - 48) }
    }

    private static func value(of variable: String, in process: pid_t) -> String? {
      guard let environment = contents("/proc/\(process)/environ") else { return nil }
      let label = Array("\(variable)=".utf8)
      return environment.withUnsafeBytes { bytes -> String? in
        guard let base = bytes.baseAddress else { return nil }
        var start = 0
        while start < bytes.count {
          let rest = bytes.count - start
          let end = memchr(base + start, 0, rest).map { UnsafeRawPointer($0) - base } ?? bytes.count
          if rest > label.count, memcmp(base + start, label, label.count) == 0 {
            return String(decoding: bytes[(start + label.count)..<end], as: UTF8.self)
          }
          start = end + 1
        }
        return nil
      }
    }
  }
#endif
