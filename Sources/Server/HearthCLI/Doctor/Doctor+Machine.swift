import EmulatorSuite
import Foundation
import LibC

extension Doctor {
  /// Checks of the machine that the suite runs on.
  enum Machine {
    /// Checks the toolchain and the libraries that a build links.
    static func toolchain() async -> [Finding] {
      var findings: [Finding] = []
      if let swift = path(of: "swift") {
        let versionText = await output(of: swift, ["--version"])
        let version = versionText.flatMap(self.version)
        let isOld = version.map { ($0.major, $0.minor) < oldestSwift } ?? false
        let name = version.map { "\($0.major).\($0.minor)" } ?? "of unknown version"
        findings.append(
          Finding(
            "swift",
            isWell: !isOld,
            isOld
              ? "\(name) at \(swift) is too old; install 6.3 or newer from "
                + "https://www.swift.org/install"
              : "\(name) at \(swift)"
          )
        )
        if let libraries = InstalledLibraries(), let versionText {
          findings.append(installed(libraries, for: versionText))
        }
      } else {
        findings.append(
          Finding(
            "swift",
            .fix,
            "not on the PATH; install it from https://www.swift.org/install"
          )
        )
      }
      return findings + (await libraries())
    }

    /// Reports whether the compiled libraries fit the compiler, given `swift --version`.
    private static func installed(
      _ libraries: InstalledLibraries,
      for versionText: String
    ) -> Finding {
      let current = versionText.split(separator: "\n").first.map(String.init)
      let fits = libraries.compiler == nil || libraries.compiler == current
      return Finding(
        "hearth libraries",
        isWell: fits,
        fits
          ? libraries.folder
          : "\(libraries.folder) were compiled by \(libraries.compiler ?? ""), which is not the "
            + "Swift of now; run `make install` in Hearth's checkout again"
      )
    }

    private static let oldestSwift = (6, 3)

    /// Returns the first `N.M` after the word "version".
    private static func version(_ text: String) -> (major: Int, minor: Int)? {
      guard let range = text.firstRange(of: "version ") else { return nil }
      let parts = text[range.upperBound...].prefix { $0.isNumber || $0 == "." }.split(
        separator: "."
      )
      guard parts.count >= 2, let major = Int(parts[0]), let minor = Int(parts[1]) else {
        return nil
      }
      return (major, minor)
    }

    /// Checks the libraries that functions link; on Darwin all but OpenSSL are part of the system.
    private static func libraries() async -> [Finding] {
      #if canImport(Darwin)
        let needed = [("libcrypto", "openssl/core_names.h", "openssl@3")]
        let folders = ["/opt/homebrew/opt", "/usr/local/opt"].map { "\($0)/openssl@3/include" }
        let install = "brew install"
      #else
        let needed = [
          ("libcurl", "curl/curl.h", "libcurl4-openssl-dev"),
          ("sqlite3", "sqlite3.h", "libsqlite3-dev"), ("zlib", "zlib.h", "zlib1g-dev"),
          ("libcrypto", "openssl/core_names.h", "libssl-dev"),
        ]
        let folders = ["/usr/include", "/usr/local/include"] + multiarchFolders()
        let install = "apt-get install"
      #endif
      var missing: [String] = []
      for (name, header, package) in needed {
        if folders.contains(where: { FileManager.default.fileExists(atPath: "\($0)/\(header)") }) {
          continue
        }
        if let tool = path(of: "pkg-config"), await output(of: tool, ["--exists", name]) != nil {
          continue
        }
        missing.append(package)
      }
      return [
        Finding(
          "libraries",
          isWell: missing.isEmpty,
          missing.isEmpty
            ? needed.map(\.0).joined(separator: ", ")
            : "missing for builds; install them with: \(install) "
              + missing.joined(separator: " ")
        )
      ]
    }

    /// Returns Debian's multiarch folders, such as `/usr/include/x86_64-linux-gnu`.
    private static func multiarchFolders() -> [String] {
      // On a system without this folder, the headers are elsewhere.
      let names = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/include")) ?? []
      return names.filter { $0.contains("-linux-") }.map { "/usr/include/\($0)" }
    }

    private static func path(of program: String) -> String? {
      ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
        .map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns a program's output; nil if it cannot be run or fails.
    private static func output(of program: String, _ arguments: [String]) async -> String? {
      let process = Process()
      process.executableURL = URL(filePath: program)
      process.arguments = arguments
      let output = Pipe()
      process.standardOutput = output
      process.standardError = FileHandle.nullDevice
      process.standardInput = FileHandle.nullDevice
      // The reason why the program does not run does not matter here.
      guard (try? process.run()) != nil else { return nil }
      return await withCheckedContinuation { continuation in
        // The thread ends with the program, which is a short query.
        Thread.detachNewThread {
          let text = output.fileHandleForReading.readDataToEndOfFile()
          process.waitUntilExit()
          let succeeded = process.terminationStatus == 0
          continuation.resume(returning: succeeded ? String(decoding: text, as: UTF8.self) : nil)
        }
      }
    }

    /// Checks that the data folder is writable and has enough free disk space.
    static func dataFolder(_ path: String) -> Finding {
      let exists = FileManager.default.fileExists(atPath: path)
      guard !exists || FileManager.default.isWritableFile(atPath: path) else {
        return Finding(
          "data folder",
          .fix,
          "\(path) is not writable; fix it with: chmod -R u+rwX \(path)"
        )
      }
      // A file system that does not report its free space is not checked.
      let attributes = try? FileManager.default.attributesOfFileSystem(
        forPath: exists ? path : FileManager.default.currentDirectoryPath
      )
      if let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value, free < roomMin {
        return Finding(
          "data folder",
          .fix,
          "\(path) has \(free >> 20) MB left on its disk; without room every write is refused"
        )
      }
      return Finding("data folder", .ok, exists ? path : "\(path) is made by the first start")
    }

    /// The minimum free disk space; a build alone needs more.
    private static let roomMin: Int64 = 256 << 20

    /// Checks that each default port but some can be bound; called only while no suite runs.
    static func ports(_ configured: [SuiteService: Int], except taken: Set<Int>) -> [Finding] {
      SuiteConfiguration.defaultPorts.merging(configured) { $1 }.filter {
        $0.value != 0 && !taken.contains($0.value)
      }.sorted { $0.value < $1.value }.map { service, port in
        let isFree = Self.canBind(port)
        return Finding(
          "port \(port)",
          isWell: isFree,
          isFree
            ? "free for \(service.title)"
            : "in use by another program; end it, or start with --\(service.rawValue)-port"
        )
      }
    }

    private static func canBind(_ port: Int) -> Bool {
      #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
      #endif
      guard descriptor >= 0 else { return false }
      defer { close(descriptor) }
      var reuse: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
    }
  }
}
