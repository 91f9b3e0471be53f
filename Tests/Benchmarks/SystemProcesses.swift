import Foundation

/// The processes listed in `/proc`, where it exists.
enum SystemProcesses {
  /// Returns the IDs of all processes.
  static func all() -> [Int32] {
    numbers(in: "/proc")
  }

  /// Returns the IDs of a process's children.
  static func children(of processID: Int32) -> [Int32] {
    all().filter { Entry(path: "/proc/\($0)").field("PPid:") == Int(processID) }
  }

  /// Returns the `/proc` entry of a process.
  static func process(_ processID: Int32) -> Entry { Entry(path: "/proc/\(processID)") }

  /// Returns the `/proc` entries of a process's threads.
  static func threads(of processID: Int32) -> [Entry] {
    let folder = "/proc/\(processID)/task"
    return numbers(in: folder).map { Entry(path: "\(folder)/\($0)") }
  }

  /// The `/proc` entry of a process or thread; all values are nil once it has ended.
  struct Entry: Sendable {
    fileprivate var path: String

    /// Returns the number after a label in a file such as `status`.
    func field(_ name: String, in file: String = "status") -> Int? {
      let line = text(of: file)?.split(separator: "\n").first { $0.hasPrefix(name) }
      return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
    }

    /// Returns the number at the start of a file.
    func first(of file: String) -> Int? {
      text(of: file)?.split(separator: " ").first.flatMap { Int($0) }
    }

    private func text(of file: String) -> String? {
      try? String(contentsOfFile: "\(path)/\(file)", encoding: .utf8)
    }
  }

  private static func numbers(in folder: String) -> [Int32] {
    // Without `/proc`, or after the process has ended, there are no entries.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.compactMap { Int32($0) }
  }
}
