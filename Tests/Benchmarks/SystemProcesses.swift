import Foundation

/// The processes of the machine, where `/proc` tells of them.
enum SystemProcesses {
  /// The numbers of all.
  static func all() -> [Int32] {
    numbers(in: "/proc")
  }

  /// The processes that a process has started.
  static func children(of processID: Int32) -> [Int32] {
    all().filter { Entry(path: "/proc/\($0)").field("PPid:") == Int(processID) }
  }

  /// A process as a whole.
  static func process(_ processID: Int32) -> Entry { Entry(path: "/proc/\(processID)") }

  /// The threads of a process.
  static func threads(of processID: Int32) -> [Entry] {
    let folder = "/proc/\(processID)/task"
    return numbers(in: folder).map { Entry(path: "\(folder)/\($0)") }
  }

  /// What there is to read of a process or a thread; nil everywhere once it has ended.
  struct Entry: Sendable {
    fileprivate var path: String

    /// The number behind a name, as `status` and files of its kind give it.
    func field(_ name: String, in file: String = "status") -> Int? {
      let line = text(of: file)?.split(separator: "\n").first { $0.hasPrefix(name) }
      return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
    }

    /// The number that a file begins with.
    func first(of file: String) -> Int? {
      text(of: file)?.split(separator: " ").first.flatMap { Int($0) }
    }

    private func text(of file: String) -> String? {
      try? String(contentsOfFile: "\(path)/\(file)", encoding: .utf8)
    }
  }

  private static func numbers(in folder: String) -> [Int32] {
    // Where there is no such folder, there is nothing to tell.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.compactMap { Int32($0) }
  }
}
