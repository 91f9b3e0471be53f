import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A PostgreSQL server of its own on a fresh cluster, where it is installed.
///
/// It commits synchronously, as it does out of the box: what a durable store costs on this disk.
struct PostgreSQL: Sendable {
  private let initdb: String
  private let postgres: String
  /// Whom it runs as; it refuses to run as root.
  private let user: User?

  private struct User: Sendable {
    var id: uid_t
    var group: gid_t
  }

  /// Nil when it is not on the search path, or when root has no other user to run it as.
  init?(path: String) {
    // Debian keeps the server's programs apart from the search path.
    let folders =
      path.split(separator: ":").map(String.init)
      + (10...20).reversed().map { "/usr/lib/postgresql/\($0)/bin" }
    func find(_ name: String) -> String? {
      folders.map { "\($0)/\(name)" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
    guard let initdb = find("initdb"), let postgres = find("postgres") else { return nil }
    self.initdb = initdb
    self.postgres = postgres
    guard getuid() == 0 else {
      user = nil
      return
    }
    guard let other = getpwnam("postgres") ?? getpwnam("nobody") else { return nil }
    user = User(id: other.pointee.pw_uid, group: other.pointee.pw_gid)
  }

  /// Makes a cluster in `folder`, starts the server, and stops it.
  func run<Result: Sendable>(
    in folder: String,
    body: @escaping @Sendable (Address) async throws -> Result
  ) async throws -> Result {
    let cluster = folder + "/postgresql"
    try FileManager.default.createDirectory(atPath: cluster, withIntermediateDirectories: true)
    if let user, chown(cluster, user.id, user.group) != 0 {
      throw BenchmarkError("\(cluster) cannot be given to PostgreSQL's user.")
    }
    try await ServedProcess.run(
      command(initdb, ["-D", cluster, "-U", "benchmark", "-A", "trust", "-E", "UTF8", "--no-sync"])
    ) { line in
      line.hasPrefix("Success.") ? true : nil
    } body: { _, _ in
    }
    let address = Address(port: try Address.freePort())
    let arguments = [
      "-D", cluster, "-p", "\(address.port)", "-c", "listen_addresses=127.0.0.1", "-c",
      "unix_socket_directories=",
    ]
    return try await ServedProcess.run(command(postgres, arguments)) { line in
      line.contains("ready to accept connections") ? address : nil
    } body: { _, address in
      try await body(address)
    }
  }

  private func command(_ executable: String, _ arguments: [String]) -> ServedProcess.Command {
    var command = ServedProcess.Command(
      executable: executable,
      arguments: arguments,
      // Open to every user, as the folder that it was called from may not be.
      folder: "/"
    )
    command.timeMax = ServedProcess.neighbourTimeMax
    command.userID = user?.id
    command.groupID = user?.group
    return command
  }
}
