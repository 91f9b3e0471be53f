import Foundation
import LibC
import Subprocess
import Synchronization

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The address of a service.
struct Address: Sendable, Codable, CustomStringConvertible {
  var host = "127.0.0.1"
  var port: Int

  var description: String { "\(host):\(port)" }

  /// Finds a port that was just free, for servers that do not report their port.
  static func freePort() throws -> Int {
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

/// A running server in its own process group.
struct ServedProcess: Sendable {
  /// The started process, which leads its group.
  var processID: Int32

  /// The command that starts a server.
  struct Command: Sendable {
    var executable: String
    var arguments: [String]
    var folder: String
    /// The maximum time until the server is ready.
    var startTimeMax: Duration = .seconds(30)
    /// The maximum running time; nil if the measurements themselves are bounded.
    var timeMax: Duration?
    /// Environment variables in addition to those of this process.
    var environment: [String: String] = [:]
    /// The user to run as; nil for the user of this process.
    var userID: uid_t?
    var groupID: gid_t?
  }

  /// The maximum running time of a compared server: several times what all its parts normally need.
  static let neighbourTimeMax = Duration.seconds(600)
  /// The time a server has to stop before it is killed.
  private static let stopTimeMax = Duration.seconds(5)
  /// The number of final output lines that an error report includes.
  private static let linesKept = 20

  /// Starts a server, runs `body` once it is ready, and stops it.
  ///
  /// The server is ready when `ready` returns a value for a line of its output; if `value` is
  /// given, at once. The whole process group is gone when this returns, also after an error or a
  /// cancellation.
  static func run<Ready: Sendable, Result: Sendable>(
    _ command: Command,
    ready: @escaping @Sendable (String) throws -> Ready?,
    else value: Ready? = nil,
    body: @escaping @Sendable (ServedProcess, Ready) async throws -> Result
  ) async throws -> Result {
    let stop: [TeardownStep] = [
      .gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: stopTimeMax),
      .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero),
    ]
    var options = PlatformOptions()
    options.processGroupID = 0
    options.userID = command.userID
    options.groupID = command.groupID
    options.teardownSequence = stop
    let run = try await Subprocess.run(
      .path(FilePath(command.executable)),
      arguments: Arguments(command.arguments),
      environment: .inherit.updating(
        Dictionary(
          uniqueKeysWithValues: command.environment.map {
            (Environment.Key(stringLiteral: $0.key), $0.value)
          }
        )
      ),
      workingDirectory: FilePath(command.folder),
      platformOptions: options,
      input: .none,
      output: .sequence,
      error: .sequence
    ) { execution in
      let output = Output<Ready>(ready)
      return try await withThrowingTaskGroup(of: Void.self) { group in
        // Both outputs are read to their ends, so that the server never blocks on a full pipe.
        group.addTask {
          async let errors: Void = output.read(execution.standardError)
          try await output.read(execution.standardOutput)
          try await errors
          output.end()
        }
        let result: Swift.Result<Result, any Error>
        do {
          let ready =
            if let value { value } else { try await output.value(within: command.startTimeMax) }
          let process = ServedProcess(processID: execution.processIdentifier.value)
          result = .success(
            try await bounded(by: command.timeMax, process) { try await body(process, ready) }
          )
        } catch {
          result = .failure(error)
        }
        await execution.teardown(using: stop)
        // Children may outlive the leader. An error here means that the group is already empty.
        try? execution.send(signal: .kill, toProcessGroup: true)
        try await group.waitForAll()
        return try result.get()
      }
    }
    return run.closureResult
  }

  /// Runs `body`; after `timeMax` it ends the process, so that anything waiting for it fails.
  private static func bounded<Result: Sendable>(
    by timeMax: Duration?,
    _ process: ServedProcess,
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    guard let timeMax else { return try await body() }
    return try await withThrowingTaskGroup(of: Result?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await Task.sleep(for: timeMax)
        return nil
      }
      defer { group.cancelAll() }
      if let result = try await group.next() ?? nil { return result }
      kill(-process.processID, SIGKILL)
      // `body` ends when its connections close; its result came too late and is ignored.
      _ = await group.nextResult()
      throw BenchmarkError("It was not done within \(timeMax), so it was ended.")
    }
  }

  /// The output of a server: searched for the ready line, with the last lines kept for errors.
  private final class Output<Ready: Sendable>: Sendable {
    private let ready: @Sendable (String) throws -> Ready?
    private let lines = Mutex<[String]>([])
    private let stream: AsyncThrowingStream<Ready, any Error>
    private let continuation: AsyncThrowingStream<Ready, any Error>.Continuation

    init(_ ready: @escaping @Sendable (String) throws -> Ready?) {
      self.ready = ready
      (stream, continuation) = AsyncThrowingStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    }

    func read(_ output: SubprocessOutputSequence) async throws {
      for try await line in output.strings() {
        let text = line.trimmingCharacters(in: .newlines)
        lines.withLock { lines in
          lines.append(text)
          if lines.count > linesKept { lines.removeFirst() }
        }
        do {
          if let value = try ready(text) { continuation.yield(value) }
        } catch {
          continuation.finish(throwing: error)
        }
      }
    }

    /// Marks the end of both outputs.
    func end() { continuation.finish() }

    func value(within timeMax: Duration) async throws -> Ready {
      try await withThrowingTaskGroup(of: Ready?.self) { group in
        group.addTask { [stream] in try await stream.first { _ in true } }
        group.addTask {
          try await Task.sleep(for: timeMax)
          return nil
        }
        defer { group.cancelAll() }
        if let value = try await group.next() ?? nil { return value }
        let last = lines.withLock { $0.joined(separator: "\n  ") }
        throw BenchmarkError("A server did not start. Its last lines:\n  \(last)")
      }
    }
  }
}
