import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The vendor's Firestore emulator, where it is installed; it keeps documents in memory only.
struct OfficialEmulator: Sendable {
  private let executable: String

  /// Nil when `gcloud` or Java is not on the search path.
  init?(path: String) {
    func find(_ name: String) -> String? {
      path.split(separator: ":").map { "\($0)/\(name)" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    guard let executable = find("gcloud"), find("java") != nil else { return nil }
    self.executable = executable
  }

  /// Starts it, with its own launcher, and stops it.
  func run<Result: Sendable>(
    in folder: String,
    body: @Sendable (ServedProcess, Address) async throws -> Result
  ) async throws -> Result {
    let address = Address(port: try Self.freePort())
    let command = ServedProcess.Command(
      executable: executable,
      arguments: ["emulators", "firestore", "start", "--host-port=\(address)", "--quiet"],
      folder: folder,
      // A Java and a Python program start one after the other.
      startTimeMax: .seconds(60)
    )
    return try await ServedProcess.run(command) { line in
      line.contains("is now running") ? address : nil
    } body: { process, address in
      try await body(process, address)
    }
  }

  /// A port that was free a moment ago: this emulator does not say which one it took.
  private static func freePort() throws -> Int {
    #if canImport(Glibc)
      let kind = CInt(SOCK_STREAM.rawValue)
    #else
      let kind = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw BenchmarkError("There is no free socket.") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
      }
    }
    guard result else { throw BenchmarkError("There is no free port.") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
