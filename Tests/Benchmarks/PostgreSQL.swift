import Foundation
import LibC

/// A PostgreSQL server on a new cluster, where PostgreSQL is installed.
///
/// It commits synchronously, its default, and so shows what durability costs on this disk.
struct PostgreSQL: Sendable {
  private let initdb: String
  private let postgres: String
  /// The user that runs the server; PostgreSQL refuses to run as root.
  private let user: User?

  private struct User: Sendable {
    var id: uid_t
    var group: gid_t
  }

  /// Returns nil if PostgreSQL is not found, or if root has no other user to run it as.
  init?(path: String) {
    // Debian installs the server's programs outside the search path.
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

  /// Creates a cluster in `folder`, starts the server, runs `body`, and stops the server.
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
      // Every user can open it, unlike the folder from which the benchmarks were started.
      folder: "/"
    )
    command.timeMax = ServedProcess.neighbourTimeMax
    command.userID = user?.id
    command.groupID = user?.group
    return command
  }
}
